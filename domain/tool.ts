import type { z } from 'zod'
import type { Attachments } from './attachment.ts'
import type { Death } from './death.ts'
import type { PostconditionProof, StepVerification } from './envelope.ts'
import type { InventoryKind } from './kinds.ts'
import type { ResourceKind, ResourceRef } from './registry.ts'
import type { QueryVerdict } from './source.ts'
import type { ToolUndo, UndoLook } from './undo.ts'

/**
 * What a call does to the world. `resolve` finds out what a name means, `read` looks, `record` writes to the incident's own
 * log, `write` changes the platform, `terminal` ends the investigation. What is unknown is a write.
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

/** A thing that a look-up made known: writes may name it from now on. `host` is what it runs on, where it runs on something. */
export type DiscoveredThing = ResourceRef & {
  name: string
  aliases: string[]
  host?: string | null
  /** The answer describes this thing and does not only mention it: that is a look at it, though the call named something else. */
  seen?: true
  /** How it is, in the platform's word (`nominal`, `degraded`, `critical`, `unknown`, `down`), where the answer says so. */
  health?: string
}

/** Containers, pods, guests or buckets that an answer listed: commands on that resource may look into them from now on. */
export type ListedNames = { on: ResourceRef; names: string[] }

/**
 * Where a command-carrying call holds what it would execute: words for no shell at all, or a text for bash. With `directory`, which
 * field says where it runs, and where it does when that says nothing.
 */
export type CommandField = {
  field: string
  form: 'argv' | 'bash'
  directory?: { field: string; otherwise: string }
}

/** Fields of a tool's input that name resources, with the kinds each may be of. */
export type NamedFields = Readonly<Record<string, ResourceKind | readonly ResourceKind[]>>

/** The core API as tools see it. `ok: false` is an answer; a fault of the network is thrown and may be retried. */
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
  /** Fingerprint of the state the approval was given for; the receiver refuses 412 when it has changed. */
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
  /** Asked whatever it is, and at this risk or a higher one: where it would be done, everything is. */
  asks?: { risk: Risk; why: string }
  /** The name that the engine gives the container which it is about, called by whatever name or id. */
  container?: string
  /** Hosts that are taken for dead, whose VMs it would start elsewhere. */
  deaths?: Death[]
  /** Of an undo: whether all is as the write left it that is taken back, by a look of now. */
  left?: UndoLook
  /** Commands that may look as root where it would run, each word for word. */
  rootReads?: string[][]
  /** What would happen, in plain data. `possible: false` says plainly that there is no dry run. */
  dryRun: {
    possible: boolean
    summary: string
    details: Record<string, unknown>
    /** What will prove exactly this call, where that depends on its arguments or its place; else the tool's own `proof`. */
    proof?: PostconditionProof
  } & Attachments
}

/** What a look after a write showed. `holds` null: it ran, and nothing was promised that could be looked at. */
export type Observation = { holds: boolean | null; observed: string; steps?: StepVerification[] }

/** What a site may lack: changes of senders, declared jobs, a platform that lists shards, or hosts with their VMs, a database that may be written to, and one that takes statements. */
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
  /** A person may let the very same action run again without asking. Never for commands, nor for high and critical risk. */
  grantable?: boolean
  /** What the arguments name. Reads that look at a target close its verification; writes need it looked up. */
  names: NamedFields
  /** Which field says of which kind the named things are, where the caller says it: no other kind is meant then. */
  kindField?: string
  /** Runs inside what it names, so that naming a host where a guest on it is meant would hit the wrong file system. */
  inside?: boolean
  /** Tools that carry a command: what it is decides effect and verdict, not the tool's name. */
  command?: CommandField
  /** Reads of sources: whether the query is bounded, by its arguments alone. The core API judges it again before it is sent. */
  judgeQuery?(input: Input): QueryVerdict
  /** Offered only where a source of a kind that serves it exists. */
  fromSource?: true
  /** Of which incidents the first turn offers it, by the kind of their resource, null for none; others get it by `more_tools`. Absent: of all. */
  firstFor?: readonly (InventoryKind | null)[]
  /** Where a runbook fits the incident, the first turn offers it only if the runbook names it; `more_tools` has it otherwise. */
  isSituational?: boolean
  /** Offered only where the site has it: a change was ever taken in, an operator declared jobs, a platform lists shards or hosts. */
  needs?: SiteNeed
  /** Offered first for these kinds as well, where the site lacks the tool that is named. */
  insteadOf?: Partial<Record<InventoryKind, string>>
  /** A successful answer in one sentence that names what it is about: shown in place of the answer's data (`domain/say.ts`). */
  say(output: Output, input: Input): string
  /** What a successful answer made known. */
  discovers(output: Output, input: Input): DiscoveredThing[]
  /** Names that are no resources and that it listed there, by the column of a known form alone. */
  lists?(output: Output, input: Input): ListedNames | null
  /** Writes only: targets, identity and fingerprint from the world as it is now. */
  prepare?(input: Input, context: ToolContext): Promise<Preparation>
  /** Writes only: a person decides within this time, where the settings say nothing else: what the dry run found is old by then. */
  dryRunAgesAfterSeconds?: number
  /** Writes only: what proves that one worked, or that nothing does. */
  proof?: PostconditionProof
  /** Writes only: how that is looked at, and for how long code may wait for it. Null, or thrown: it cannot be read just now. */
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
