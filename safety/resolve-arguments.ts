import type { ResourceKind, ResourceRef } from '../domain/registry.ts'
import type { CommandField, NamedFields, ToolFacts } from '../domain/tool.ts'
import { type CommandContext, type CommandVerdict, judgeField } from './command/judge.ts'
import type { SafetyState } from './fold.ts'
import { guestsReferencedOn, knownHosts, namesKnownOn, resolveName } from './resolved.ts'
import { type Correction, quote, type RuleAnswer, refuse } from './ruling.ts'

/** A call with names resolved to ids and corrections applied, as it will be judged and may run. */
export type ResolvedCall = {
  arguments: Record<string, unknown>
  targets: ResourceRef[]
  command: CommandVerdict | null
  corrected: Correction[]
  problem: RuleAnswer | null
}

/**
 * Resolves a call by the look-ups. Pure. A name or alias becomes its id; an ambiguous name is a
 * problem. A call may not name a host if it means a guest on the host. An endless command gets a
 * form that ends. `rootReads`: commands that the device allows with `sudo`, which only read.
 */
export function resolveArguments(
  facts: ToolFacts,
  args: Record<string, unknown>,
  state: SafetyState,
  nowMs: number,
  rootReads?: CommandContext['rootReads'],
): ResolvedCall {
  const names = narrowNames(facts, args)
  const named = resolveNames(names, args, state, nowMs)
  const routed = facts.inside ? routeToGuest(names, named.arguments, state, nowMs) : unchanged(named.arguments)
  const bounded = facts.command
    ? boundCommand(facts.command, routed.arguments, {
        knownHosts: knownHosts(state.resolved, nowMs),
        knownNames: namesKnownOn(state.resolved, namedTargets(names, routed.arguments, state, nowMs), nowMs),
        rootReads,
      })
    : { ...unchanged(routed.arguments), command: null }
  const asked = facts.judgeQuery ? boundQuery(facts.judgeQuery, bounded.arguments) : unchanged(bounded.arguments)
  return {
    arguments: asked.arguments,
    targets: namedTargets(names, asked.arguments, state, nowMs),
    command: bounded.command,
    corrected: [...routed.corrected, ...bounded.corrected, ...asked.corrected],
    problem: named.problem ?? routed.problem ?? asked.problem,
  }
}

/**
 * Limits names to the kind that the call names, because a resource of another kind with the same id
 * does not count.
 */
function narrowNames({ names, kindField }: ToolFacts, args: Record<string, unknown>): NamedFields {
  const said = kindField === undefined ? undefined : args[kindField]
  if (typeof said !== 'string') return names
  return Object.fromEntries(
    Object.entries(names).map(([field, kinds]) => [field, listOf(kinds).filter((kind) => kind === said)]),
  )
}

/**
 * Lists the resources in a call's arguments. A resource that was not looked up may be of any
 * allowed kind.
 */
function namedTargets(
  names: NamedFields,
  args: Record<string, unknown>,
  state: SafetyState,
  nowMs: number,
): ResourceRef[] {
  return Object.entries(names).flatMap(([field, kinds]) =>
    valuesOf(args[field]).flatMap((id) => {
      const meant = resolveName(state.resolved, listOf(kinds), id, nowMs)
      return meant.kind === 'known' ? [meant.entry.ref] : listOf(kinds).map((kind) => ({ kind, id }))
    }),
  )
}

type Step = { arguments: Record<string, unknown>; corrected: Correction[]; problem: RuleAnswer | null }

const unchanged = (args: Record<string, unknown>): Step => ({ arguments: args, corrected: [], problem: null })

function resolveNames(names: NamedFields, args: Record<string, unknown>, state: SafetyState, nowMs: number): Step {
  let problem: RuleAnswer | null = null
  const settled = { ...args }
  for (const [field, kinds] of Object.entries(names)) {
    settled[field] = mapValues(args[field], (name) => {
      const meant = resolveName(state.resolved, listOf(kinds), name, nowMs)
      if (meant.kind === 'ambiguous') {
        const candidates = meant.candidates.map((entry) => entry.canonical)
        problem ??= refuse(
          'AMBIGUOUS_NAME',
          `${quote(name)} means ${candidates.length} resources: ${candidates.join(', ')}`,
          'Name one of these resources by its id.',
          { name, candidates },
        )
      }
      return meant.kind === 'known' ? meant.entry.ref.id : name
    })
    if (settled[field] === undefined) delete settled[field]
  }
  return { arguments: settled, corrected: [], problem }
}

/** Redirects a call from a host to the guest, because a path names another file in the guest. */
function routeToGuest(names: NamedFields, args: Record<string, unknown>, state: SafetyState, nowMs: number): Step {
  for (const [field, kinds] of Object.entries(names)) {
    const name = args[field]
    if (typeof name !== 'string' || !listOf(kinds).some((kind) => kind === 'host' || kind === 'node')) continue
    const guests = guestsReferencedOn(state.resolved, name, nowMs)
    const [guest] = guests
    if (!guest) continue
    if (guests.length === 1 && listOf(kinds).includes(guest.ref.kind)) {
      const corrected: Correction = { code: 'ROUTING_MISMATCH', field, from: name, to: guest.ref.id }
      return { arguments: { ...args, [field]: guest.ref.id }, corrected: [corrected], problem: null }
    }
    const ids = guests.map((entry) => entry.canonical)
    const problem = refuse(
      'ROUTING_MISMATCH',
      `${field} ${quote(name)} is a host, but your recent calls meant ${ids.join(', ')} on it`,
      `Name the resource that you mean: ${ids.join(' or ')}.`,
      { field, host: name, more_specific: ids, target: guest.canonical },
    )
    return { arguments: args, corrected: [], problem }
  }
  return unchanged(args)
}

function boundCommand(
  command: CommandField,
  args: Record<string, unknown>,
  known: Pick<CommandContext, 'knownHosts' | 'knownNames' | 'rootReads'>,
): Step & { command: CommandVerdict | null } {
  const { field, form } = command
  const judged = judgeField(command, args, known)
  if (judged.verdict !== 'ask' || judged.rewrite === null) return { ...unchanged(args), command: judged }
  const to = form === 'argv' ? ['bash', '-c', judged.rewrite] : judged.rewrite
  const rewritten = { ...args, [field]: to }
  const again = judgeField(command, rewritten, known)
  // Tries only one form that ends. If that form may not run either, the call stays as it is.
  if (again.verdict !== 'run') return { ...unchanged(args), command: judged }
  const code =
    judged.code === 'UNBOUNDED' ? 'UNBOUNDED_COMMAND' : judged.code === 'OPTION_MISSING' ? 'OPTION_ADDED' : 'SAFER_FORM'
  const corrected: Correction = { code, field, from: args[field], to }
  return { arguments: rewritten, corrected: [corrected], problem: null, command: again }
}

/**
 * Replaces once a query that asks for too much by its bounded form; if that fails, the query is
 * refused unchanged.
 */
function boundQuery(judgeQuery: NonNullable<ToolFacts['judgeQuery']>, args: Record<string, unknown>): Step {
  const verdict = judgeQuery(args)
  if (verdict.ok) return unchanged(args)
  const rewritten = { ...args, ...verdict.bounded }
  if (verdict.bounded && judgeQuery(rewritten).ok) {
    const corrected = Object.entries(verdict.bounded).map(
      ([field, to]): Correction => ({ code: 'UNBOUNDED_QUERY', field, from: args[field] ?? null, to }),
    )
    return { arguments: rewritten, corrected, problem: null }
  }
  const hint = verdict.bounded
    ? `Ask within bounds, as ${JSON.stringify(verdict.bounded)}.`
    : (verdict.instead ?? 'Name a metric or a resource, and a window that fits.')
  return { ...unchanged(args), problem: refuse('UNBOUNDED_QUERY', verdict.reason, hint, { bounded: verdict.bounded }) }
}

function listOf(kinds: ResourceKind | readonly ResourceKind[]): readonly ResourceKind[] {
  return typeof kinds === 'string' ? [kinds] : kinds
}

function valuesOf(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : []
}

function mapValues(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value)
  if (Array.isArray(value)) return value.map((each) => (typeof each === 'string' ? change(each) : each))
  return value
}
