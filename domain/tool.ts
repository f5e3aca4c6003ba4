import type { z } from 'zod'
import type { Attachments } from './attachment.ts'
import type { Death } from './death.ts'
import type { PostconditionProof, StepVerification } from './envelope.ts'
import type { InventoryKind } from './kinds.ts'
import type { ResourceKind, ResourceRef } from './registry.ts'
import type { QueryVerdict } from './source.ts'
import type { ToolUndo, UndoLook } from './undo.ts'

/**
 * The effect of a call. `resolve` looks up a name, `read` reads a state, `record` writes to the
 * incident's log, `write` changes the platform, `terminal` ends the investigation. An unknown
 * effect counts as a write.
 */
export type EffectKind = 'resolve' | 'read' | 'record' | 'write' | 'terminal'

/** Risks, lowest first. Configuration may only raise the risk of a tool. */
export const risks = ['none', 'low', 'medium', 'high', 'critical'] as const
export type Risk = (typeof risks)[number]

/** Returns the highest of the given risks; `none` if none is given. */
export function highestRisk(...given: readonly (Risk | null | undefined)[]): Risk {
  return risks.findLast((risk) => given.includes(risk)) ?? 'none'
}

/** How many people must approve a call of each risk. */
export const requiredApprovals: Record<Risk, number> = { none: 0, low: 1, medium: 1, high: 1, critical: 2 }

type ToolError = {
  code: string
  message: string
  /** True if the policy stopped the call and nothing was tried. */
  blocked: boolean
  /** True if the call was tried and failed. */
  failed: boolean
  /** Whether the call may succeed if it is repeated later. */
  retryable: boolean
  details: Record<string, unknown>
}

/** The result of every tool, as the model reads it. */
export type Envelope = {
  ok: boolean
  data?: unknown
  error?: ToolError
  meta: Record<string, unknown>
}

/**
 * A resource that a look-up found, so that later writes may name it. `host`: the host on which the
 * resource runs; null or absent if it runs on none.
 */
export type DiscoveredThing = ResourceRef & {
  name: string
  aliases: string[]
  host?: string | null
  /** Set if the result describes this resource, although the call named another resource. */
  seen?: true
  /**
   * The state of the resource in the platform's word (`nominal`, `degraded`, `critical`, `unknown`,
   * `down`), if the result has one.
   */
  health?: string
}

/**
 * Containers, pods, guests or buckets that a result lists. Later commands on the resource `on` may
 * read them.
 */
export type ListedNames = { on: ResourceRef; names: string[] }

/**
 * The argument of a tool that contains a command: words without a shell (`argv`), or a text for
 * bash. `directory`: the argument with the working directory, and its default.
 */
export type CommandField = {
  field: string
  form: 'argv' | 'bash'
  directory?: { field: string; otherwise: string }
}

/** Arguments of a tool that name resources, with the kinds that each argument allows. */
export type NamedFields = Readonly<Record<string, ResourceKind | readonly ResourceKind[]>>

/**
 * The response of the core API to a tool. `ok: false` is also a response. A network fault is
 * thrown, so that the call is retried.
 */
export type CoreAnswer =
  | { ok: true; status: number; data: unknown }
  | {
      ok: false
      status: number
      /** `result`: the known part of the result, such as the output of a failed command. */
      problem: { title: string; detail: string; code?: string; result?: unknown }
    }

export type CorePort = {
  get(path: string, options?: { signal?: AbortSignal }): Promise<CoreAnswer>
  post(
    path: string,
    body: unknown,
    options: { idempotencyKey: string; ifMatch?: string; signal?: AbortSignal },
  ): Promise<CoreAnswer>
}

export type ToolContext = {
  core: CorePort
  incidentId: string
  /** The step key of the write, sent as `Idempotency-Key`, so that the receiver acts only once. */
  stepKey: string
  /**
   * The fingerprint of the approved state. The receiver responds with 412 if the state of its
   * targets has changed.
   */
  ifMatch: string | null
  signal?: AbortSignal
}

/** The result of a dry run. The person who decides sees it, and the approval is bound to it. */
export type Preparation = {
  /** Every resource that the action touches. */
  targets: ResourceRef[]
  /** The fields that make two calls one action. They are part of the action digest. */
  identity: Record<string, unknown>
  /** The fingerprint of the facts on which the dry run is based. */
  stateFingerprint: string
  /** Requires an approval at this risk at least, because of the place where the command runs. */
  asks?: { risk: Risk; why: string }
  /** The name that the engine gives to the container, whatever name or id the call has. */
  container?: string
  /** Hosts that are considered dead, whose VMs the call would start elsewhere. */
  deaths?: Death[]
  /** For an undo: whether the state is still as the write left it. */
  left?: UndoLook
  /** Commands that may read as root where the call would run, word for word. */
  rootReads?: string[][]
  /** The expected result, as plain data. `possible: false`: there is no dry run. */
  dryRun: {
    possible: boolean
    summary: string
    details: Record<string, unknown>
    /** The proof of exactly this call. If it is absent, the tool's `proof` applies. */
    proof?: PostconditionProof
  } & Attachments
}

/** A read that verifies a write. `holds` is null if the write has no condition to read. */
export type Observation = { holds: boolean | null; observed: string; steps?: StepVerification[] }

/**
 * Parts that an installation may lack: senders of changes, declared jobs, a platform with shards or
 * with hosts, a database source for writes, a database source for SQL statements.
 */
export type SiteNeed = 'changes' | 'jobs' | 'shards' | 'hosts' | 'databases' | 'queries'

export type Tool<Input = Record<string, unknown>, Output = unknown> = {
  name: string
  description: string
  input: z.ZodType<Input>
  output: z.ZodType<Output>
  effect: EffectKind
  risk: Risk
  /**
   * Whether the write can be reversed. A reversible low-risk write near the incident's resource
   * runs automatically.
   */
  reversible: boolean
  /**
   * Whether a person may allow an approved action to run again automatically. Never true for a tool
   * with a command, or for high and critical risk.
   */
  grantable?: boolean
  /**
   * The arguments that name resources. A read of a write's target completes the verification of the
   * write. A write requires that its targets were looked up first.
   */
  names: NamedFields
  /**
   * The argument in which the caller gives the kind of the named resources. Only resources of the
   * given kind are accepted.
   */
  kindField?: string
  /**
   * Set if the call runs inside the named resource. The name of the host instead of a guest would
   * then mean the wrong file system.
   */
  inside?: boolean
  /**
   * Set for a tool with a command. The command, not the name of the tool, determines effect and
   * verdict.
   */
  command?: CommandField
  /**
   * Set for a tool that reads sources: judges whether the arguments limit the query enough. The
   * core API judges the query again before it sends the query.
   */
  judgeQuery?(input: Input): QueryVerdict
  /** Set if the tool is offered only when a source of a suitable kind exists. */
  fromSource?: true
  /**
   * Kinds of the incident's resource for which the first turn offers the tool; null stands for an
   * incident without a resource. In all other incidents, `more_tools` adds the tool. If the list is
   * absent, the first turn offers the tool for all kinds.
   */
  firstFor?: readonly (InventoryKind | null)[]
  /**
   * Set if, in incidents with a runbook, the first turn offers the tool only if the runbook names
   * it. Otherwise `more_tools` adds the tool.
   */
  isSituational?: boolean
  /**
   * The part of an installation without which the tool is not offered: for example, jobs are
   * declared, or a platform lists hosts.
   */
  needs?: SiteNeed
  /**
   * For kinds of the incident's resource: the tool without which the first turn offers this tool
   * too. Applies if the installation lacks the named tool.
   */
  insteadOf?: Partial<Record<InventoryKind, string>>
  /**
   * Describes a success in one sentence with its subject, from the data of the result
   * (`domain/say.ts`).
   */
  say(output: Output, input: Input): string
  /** Lists resources that a successful result made known. */
  discovers(output: Output, input: Input): DiscoveredThing[]
  /**
   * Lists names in the result that are not resources. Takes names only from the column of a known
   * format.
   */
  lists?(output: Output, input: Input): ListedNames | null
  /** Writes only: determines targets, identity and fingerprint from the current state. */
  prepare?(input: Input, context: ToolContext): Promise<Preparation>
  /** Writes only: the default seconds to decide. Afterwards the dry run is out of date. */
  dryRunAgesAfterSeconds?: number
  /** Writes only: how success is proved, or that it cannot be proved. */
  proof?: PostconditionProof
  /**
   * Writes only: the read that verifies the write, and for how long the read is repeated. Null, or
   * an exception, means that the state cannot be read.
   */
  postcondition?: {
    withinSeconds: number
    check(input: Input, output: Output | null, context: ToolContext): Promise<Observation | null>
  }
  /** Writes only: how a completed write is undone. Absent if the tool declares no undo. */
  undo?: ToolUndo<Input>
  run(input: Input, context: ToolContext): Promise<CoreAnswer>
}

/** The part of a tool that the policy check needs: plain data, without functions that could act. */
export type ToolFacts = {
  name: string
  effect: EffectKind
  risk: Risk
  reversible: boolean
  grantable?: boolean
  dryRunAgesAfterSeconds?: number
  input: z.ZodType
  names: NamedFields
  kindField?: string
  inside?: boolean
  command?: CommandField
  judgeQuery?(input: Record<string, unknown>): QueryVerdict
}
