import type { z } from 'zod'
import type { Attachments } from './attachment.ts'
import type { Death } from './death.ts'
import type { PostconditionProof, StepVerification } from './envelope.ts'
import type { InventoryKind } from './kinds.ts'
import type { ResourceKind, ResourceRef } from './registry.ts'
import type { QueryVerdict } from './source.ts'
import type { ToolUndo, UndoLook } from './undo.ts'

/**
 * The effect of a call. `resolve` looks up a name, `read` reads, `record` writes to the incident's
 * log, `write` changes the platform, `terminal` ends the investigation. An unknown effect counts as
 * a write.
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
  /** Whether the same call may succeed later. */
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
 * A resource that a look-up found, so that writes may name it from now on. `host`: where it runs,
 * if anywhere.
 */
export type DiscoveredThing = ResourceRef & {
  name: string
  aliases: string[]
  host?: string | null
  /** Set if the result describes this resource, although the call named another. */
  seen?: true
  /**
   * The state in the platform's word (`nominal`, `degraded`, `critical`, `unknown`, `down`), if the
   * result has one.
   */
  health?: string
}

/**
 * Containers, pods, guests or buckets that a result lists. Commands on that resource may read them
 * from now on.
 */
export type ListedNames = { on: ResourceRef; names: string[] }

/**
 * The field with the command of a call: arguments without a shell (`argv`), or a text for bash.
 * `directory`: the field for the working directory, and its default.
 */
export type CommandField = {
  field: string
  form: 'argv' | 'bash'
  directory?: { field: string; otherwise: string }
}

/** Input fields that name resources, with the kinds that each allows. */
export type NamedFields = Readonly<Record<string, ResourceKind | readonly ResourceKind[]>>

/**
 * The core API as tools use it. `ok: false` is a response. A network fault is thrown, so that the
 * call is retried.
 */
export type CoreAnswer =
  | { ok: true; status: number; data: unknown }
  | {
      ok: false
      status: number
      /** `result`: a partial result, such as the output of a failed command. */
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
  /** The step key, sent as `Idempotency-Key`, so that the receiver acts only once. */
  stepKey: string
  /**
   * The fingerprint of the approved state. The receiver responds with 412 if the state has changed.
   */
  ifMatch: string | null
  signal?: AbortSignal
}

/** The result of a dry run. Shown to the person who decides; the approval is bound to it. */
export type Preparation = {
  /** Every resource that the action touches. */
  targets: ResourceRef[]
  /** The fields that make two calls the same action. These fields are part of the action digest. */
  identity: Record<string, unknown>
  /** The fingerprint of the facts on which the dry run is based. */
  stateFingerprint: string
  /** Requires an approval at this risk or a higher one, because of where the command runs. */
  asks?: { risk: Risk; why: string }
  /** The name that the engine gives to the container, whatever name or id the call has. */
  container?: string
  /** Hosts that are considered dead, whose VMs the call would start elsewhere. */
  deaths?: Death[]
  /** For an undo: whether everything is still as the write left it. */
  left?: UndoLook
  /** Commands that may read as root where the call would run, word for word. */
  rootReads?: string[][]
  /** The expected result, as plain data. `possible: false`: there is no dry run. */
  dryRun: {
    possible: boolean
    summary: string
    details: Record<string, unknown>
    /** The proof for exactly this call. If absent, the tool's `proof` applies. */
    proof?: PostconditionProof
  } & Attachments
}

/** A read after a write. `holds` is null if the write ran but has no condition that can be read. */
export type Observation = { holds: boolean | null; observed: string; steps?: StepVerification[] }

/**
 * Parts that an installation may not have: senders of changes, declared jobs, a platform with
 * shards or hosts, a database for writes, one for SQL statements.
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
   * Whether a person may allow the same action to run again automatically. Never true for commands,
   * or for high and critical risk.
   */
  grantable?: boolean
  /**
   * The resources in the arguments. A read of a target completes its verification. A write requires
   * that its targets were looked up first.
   */
  names: NamedFields
  /**
   * The field in which the caller gives the kind of the named resources. Only resources of the
   * given kind are accepted.
   */
  kindField?: string
  /**
   * Set if the call runs inside the named resource, so that the name of a host instead of a guest
   * would mean the wrong file system.
   */
  inside?: boolean
  /**
   * For tools with a command. The command, not the name of the tool, determines effect and verdict.
   */
  command?: CommandField
  /**
   * For reads of sources: whether the arguments limit the query enough. The core API checks the
   * query again before sending it.
   */
  judgeQuery?(input: Input): QueryVerdict
  /** Set if the tool is offered only when a source of a suitable kind exists. */
  fromSource?: true
  /**
   * Kinds of the incident's resource for which the first turn offers the tool; null stands for no
   * resource. In other incidents `more_tools` adds it. If it is absent, the first turn offers the
   * tool for all kinds.
   */
  firstFor?: readonly (InventoryKind | null)[]
  /**
   * Set if, when a runbook fits, the first turn offers the tool only if the runbook names it.
   * Otherwise `more_tools` adds it.
   */
  isSituational?: boolean
  /**
   * The part of an installation without which the tool is not offered: changes were received, jobs
   * are declared, or a platform lists shards or hosts.
   */
  needs?: SiteNeed
  /**
   * Kinds for which the tool is also offered first, if the installation does not have the given
   * tool.
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
   * Lists names in the result that are not resources. Takes them only from the column of a known
   * format.
   */
  lists?(output: Output, input: Input): ListedNames | null
  /** Writes only: determines targets, identity and fingerprint from the current state. */
  prepare?(input: Input, context: ToolContext): Promise<Preparation>
  /** Writes only: the default time to decide. Afterwards the dry run is out of date. */
  dryRunAgesAfterSeconds?: number
  /** Writes only: how success is proved, or that it cannot be proved. */
  proof?: PostconditionProof
  /**
   * Writes only: the read that verifies the write, and for how long it is tried. Null, or an
   * exception: the state cannot be read.
   */
  postcondition?: {
    withinSeconds: number
    check(input: Input, output: Output | null, context: ToolContext): Promise<Observation | null>
  }
  /** Writes only: how a completed write is undone. Absent if no undo is declared. */
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
