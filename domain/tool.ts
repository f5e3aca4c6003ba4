import type { z } from 'zod'
import type { Attachments } from './attachment.ts'
import type { Death } from './death.ts'
import type { PostconditionProof, StepVerification } from './envelope.ts'
import type { InventoryKind } from './kinds.ts'
import type { ResourceKind, ResourceRef } from './registry.ts'
import type { QueryVerdict } from './source.ts'
import type { ToolUndo, UndoLook } from './undo.ts'

/**
 * A call's effect on the world. `resolve` finds what a name means, `read` looks, `record` writes to
 * the incident's log, `write` changes the platform, `terminal` ends the investigation. An unknown
 * one is a write.
 */
export type EffectKind = 'resolve' | 'read' | 'record' | 'write' | 'terminal'

/** Ordered: configuration may raise a tool's class, never lower it. */
export const risks = ['none', 'low', 'medium', 'high', 'critical'] as const
export type Risk = (typeof risks)[number]

/** The highest of the risks that are given; `none` where there is none. */
export function highestRisk(...given: readonly (Risk | null | undefined)[]): Risk {
  return risks.findLast((risk) => given.includes(risk)) ?? 'none'
}

/** How many distinct people must approve a call of this class when it is asked. */
export const requiredApprovals: Record<Risk, number> = { none: 0, low: 1, medium: 1, high: 1, critical: 2 }

type ToolError = {
  code: string
  message: string
  /** True when policy stopped it, so that nothing was tried. */
  blocked: boolean
  /** True when it was tried and did not work. */
  failed: boolean
  /** Would the same call, later, have a chance? */
  retryable: boolean
  details: Record<string, unknown>
}

/** What every tool answers, and what the model reads. */
export type Envelope = {
  ok: boolean
  data?: unknown
  error?: ToolError
  meta: Record<string, unknown>
}

/**
 * A thing that a look-up made known: writes may name it from now on. `host`: the one it runs on, if
 * any.
 */
export type DiscoveredThing = ResourceRef & {
  name: string
  aliases: string[]
  host?: string | null
  /** The answer describes this thing: a look at it, though the call named something else. */
  seen?: true
  /**
   * Its state in the platform's word (`nominal`, `degraded`, `critical`, `unknown`, `down`), where
   * the answer has one.
   */
  health?: string
}

/**
 * Containers, pods, guests or buckets in an answer: commands on that resource may look into them
 * from now on.
 */
export type ListedNames = { on: ResourceRef; names: string[] }

/**
 * The place of a command in a call: words for no shell, or a text for bash. `directory`: the field
 * for where it runs, and the default.
 */
export type CommandField = {
  field: string
  form: 'argv' | 'bash'
  directory?: { field: string; otherwise: string }
}

/** Fields of a tool's input that name resources, with the kinds each may be of. */
export type NamedFields = Readonly<Record<string, ResourceKind | readonly ResourceKind[]>>

/** The core API for tools. `ok: false` is an answer; a network fault is thrown for a retry. */
export type CoreAnswer =
  | { ok: true; status: number; data: unknown }
  | {
      ok: false
      status: number
      /** `result`: what there was all the same, such as the output of a command that failed. */
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
  /** The step key: sent on as `Idempotency-Key`, so that a receiver does it once. */
  stepKey: string
  /** The fingerprint of the approved state; the receiver refuses 412 where it changed. */
  ifMatch: string | null
  signal?: AbortSignal
}

/** What a dry run found: shown to the person who decides, bound by the approval. */
export type Preparation = {
  /** Every resource the action touches. */
  targets: ResourceRef[]
  /** What makes two calls the same action; goes into the action digest beside the tool's name. */
  identity: Record<string, unknown>
  /** Fingerprint of the facts the dry run rests on. */
  stateFingerprint: string
  /** Asks in any case, at this risk or a higher one: at its place everything is asked. */
  asks?: { risk: Risk; why: string }
  /** The engine's name of the container that it is about, whatever name or id was given. */
  container?: string
  /** Hosts that are taken for dead, whose VMs it would start elsewhere. */
  deaths?: Death[]
  /** For an undo: whether all is as the write left it, by a look now. */
  left?: UndoLook
  /** Commands that may look as root where it would run, each word for word. */
  rootReads?: string[][]
  /** What would happen, in plain data. `possible: false` says plainly that there is no dry run. */
  dryRun: {
    possible: boolean
    summary: string
    details: Record<string, unknown>
    /** The proof of exactly this call, by its arguments or place; else the tool's `proof`. */
    proof?: PostconditionProof
  } & Attachments
}

/**
 * The result of a look after a write. `holds` null: it ran, and promised nothing that can be looked
 * at.
 */
export type Observation = { holds: boolean | null; observed: string; steps?: StepVerification[] }

/**
 * Parts that a site may lack: changes of senders, declared jobs, a platform with shards or hosts, a
 * database that may be written to, one that takes statements.
 */
export type SiteNeed = 'changes' | 'jobs' | 'shards' | 'hosts' | 'databases' | 'queries'

export type Tool<Input = Record<string, unknown>, Output = unknown> = {
  name: string
  description: string
  input: z.ZodType<Input>
  output: z.ZodType<Output>
  effect: EffectKind
  risk: Risk
  /** A reversible low-risk write near the incident's resource runs unasked. */
  reversible: boolean
  /**
   * A person may let the very same action run again unasked. Never commands, nor high and critical
   * risk.
   */
  grantable?: boolean
  /**
   * Resources in the arguments. A read that looks at a target closes its verification; a write
   * needs a look-up.
   */
  names: NamedFields
  /**
   * The field that names the kind of the named things, where the caller does: no other kind is
   * meant then.
   */
  kindField?: string
  /** Runs inside the named thing: a host's name for a guest's hits the wrong file system. */
  inside?: boolean
  /** Tools that carry a command: what it is decides effect and verdict, not the tool's name. */
  command?: CommandField
  /**
   * For reads of sources: whether the query is bounded, by its arguments. The core API judges again
   * before it sends.
   */
  judgeQuery?(input: Input): QueryVerdict
  /** Offered only where a source of a kind that serves it exists. */
  fromSource?: true
  /**
   * Incidents whose first turn offers it, by their resource's kind, null for none; others use
   * `more_tools`. Absent: all.
   */
  firstFor?: readonly (InventoryKind | null)[]
  /**
   * Where a runbook fits, the first turn offers it only if that names it; `more_tools` has it
   * otherwise.
   */
  isSituational?: boolean
  /**
   * Offered only where the site has it: a change came in, jobs are declared, a platform lists
   * shards or hosts.
   */
  needs?: SiteNeed
  /** Offered first for these kinds as well, where the site lacks the tool that is named. */
  insteadOf?: Partial<Record<InventoryKind, string>>
  /** A success in one sentence with its subject, shown for the answer's data (`domain/say.ts`). */
  say(output: Output, input: Input): string
  /** What a successful answer made known. */
  discovers(output: Output, input: Input): DiscoveredThing[]
  /** Names that are no resources and that it listed there, by the column of a known form alone. */
  lists?(output: Output, input: Input): ListedNames | null
  /** Writes only: targets, identity and fingerprint from the world as it is now. */
  prepare?(input: Input, context: ToolContext): Promise<Preparation>
  /** Writes only: the time to decide without a setting: the dry run's findings are old after it. */
  dryRunAgesAfterSeconds?: number
  /** Writes only: what proves that one worked, or that nothing does. */
  proof?: PostconditionProof
  /** Writes only: the look, and how long code waits for it. Null, or thrown: unreadable now. */
  postcondition?: {
    withinSeconds: number
    check(input: Input, output: Output | null, context: ToolContext): Promise<Observation | null>
  }
  /** Writes only: how one that was done is taken back. Absent: nothing declared takes it back. */
  undo?: ToolUndo<Input>
  run(input: Input, context: ToolContext): Promise<CoreAnswer>
}

/** The part of a tool that the judge needs: plain data, no functions that could touch the world. */
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
