import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Claim } from '../../../domain/claim.ts'
import { sha256 } from '../../../domain/digest.ts'
import type { VerificationOutcome } from '../../../domain/envelope.ts'
import type { IncidentEvent } from '../../../domain/event.ts'
import type { ResourceRef } from '../../../domain/registry.ts'
import type { EffectKind } from '../../../domain/tool.ts'
import { tools } from '../../../tools/registry.ts'
import { partOfRow, row } from '../../support/events.ts'
import { completed } from './unchanged.ts'

/** An ending that a model played, with the rows it had in front of it. */
export type PlayedEnding = {
  name: string
  incidentId: string
  tool: 'resolve_incident' | 'escalate_incident'
  arguments: { resolution?: string; reason?: string; outcome?: string; claims?: SentClaim[] }
  rows: IncidentEvent[]
  bodies: Map<string, string>
  /** Numbers of rows whose result is cut in the recording. */
  cut: number[]
}

/** A claim in the form of its day: by numbers of rows, or with kind and quotes. */
type SentClaim = { text: string; evidence?: number[]; kind?: Claim['kind']; quotes?: Claim['quotes'] }

type Request = {
  fresh?: unknown
  duplicateOfThePrevious?: unknown
  new: { role: string; tool_call_id?: string; content: string | null }[]
  answer?: { tool_calls?: Call[] }
}
type Call = { name: string; arguments: Record<string, unknown> }
type Told = {
  ok: boolean
  data?: unknown
  error?: { code: string; message: string; blocked?: boolean; details?: { rule?: string; recovery_hint?: string } }
  meta: {
    seq: number
    tool?: string
    verification?: { outcome: VerificationOutcome; postcondition: string; observed: string; seq: number }
  }
}
type Attempt = { rows: IncidentEvent[]; bodies: Map<string, string>; cut: number[]; shown: Map<string, unknown> }

/**
 * Every ending of a folder's recordings, in order: refused ones too, each with the rows that were
 * there when it was sent.
 */
export function recordedEndings(folder: string): PlayedEnding[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .sort()
    .flatMap((name) => endingsOf(name, JSON.parse(readFileSync(join(folder, name), 'utf8')) as Request[]))
}

function endingsOf(file: string, requests: Request[]): PlayedEnding[] {
  const endings: PlayedEnding[] = []
  let attempt = emptyAttempt()
  let calls: Call[] = []
  for (const request of requests) {
    if (request.duplicateOfThePrevious) continue
    if (request.fresh) attempt = emptyAttempt()
    takeMessages(attempt, request, calls)
    calls = request.answer?.tool_calls ?? []
    const ending = calls.find(({ name }) => name === 'resolve_incident' || name === 'escalate_incident')
    if (!ending) continue
    endings.push({
      name: `${file.slice(0, 2)}.${endings.length + 1}`,
      incidentId: String(ending.arguments.id),
      tool: ending.name as PlayedEnding['tool'],
      arguments: ending.arguments as PlayedEnding['arguments'],
      rows: [...attempt.rows],
      bodies: new Map(attempt.bodies),
      cut: [...attempt.cut],
    })
  }
  return endings
}

const emptyAttempt = (): Attempt => ({ rows: [], bodies: new Map(), cut: [], shown: new Map() })

function takeMessages(attempt: Attempt, { fresh, new: messages }: Request, calls: Call[]): void {
  const opening = fresh ? messages.find(({ role }) => role === 'user') : undefined
  if (opening) attempt.rows.push(contextRow(attempt, opening.content ?? ''))
  const results = messages.flatMap(({ role, tool_call_id: id = '', content }) => {
    const call = role === 'tool' ? calls[Number(id.split('_')[1])] : undefined
    return call ? [{ id, call, content: content ?? '', told: read(content ?? '') }] : []
  })
  for (const [at, { id, call, content, told }] of results.entries()) {
    // A result that is cut lost its number: calls of one answer run in their order, three rows
    // apart.
    const before = results[at - 1]?.told.meta
    const guessed = before ? (before.verification?.seq ?? before.seq) + 3 : (results[at + 1]?.told.meta.seq ?? 0) - 3
    if (!(told.meta.seq > 0) && told.ok) told.meta.seq = guessed
    if (told.meta.seq > 0) addResult(attempt, id, call, { content, told })
  }
}

function bodyOf({ bodies }: Attempt, text: string) {
  const digest = sha256(text)
  bodies.set(digest, text)
  return { digest, bytes: text.length, head: text.slice(0, 1200), tail: text.slice(-600) }
}

function contextRow(attempt: Attempt, content: string): IncidentEvent {
  const text = /<<<DATA incident_context\n([\s\S]*)\nDATA>>>/.exec(content)?.[1] ?? content
  attempt.shown.set('the context', parsed(text))
  return { ...row('context_assembled', { context: bodyOf(attempt, text), hintFrom: null }), seq: 3 }
}

function addResult(attempt: Attempt, callId: string, call: Call, { content, told }: { content: string; told: Told }) {
  const { seq, verification } = told.meta
  // A command's tool is a write at worst; what was not verified only looked, and so did a read that
  // a person allowed.
  const atWorst = tools.get(call.name)?.effect ?? 'read'
  const isWritten = verification && atWorst !== 'read' && !verification.observed.startsWith('read-only')
  const effect: EffectKind = isWritten ? 'write' : atWorst === 'write' ? 'read' : atWorst
  const shared = { callId, tool: call.name, arguments: call.arguments, targets: targetsOf(call) }
  if (told.error?.blocked) return void attempt.rows.push({ ...refusedRow(shared, told.error), seq })
  const write = { ...shared, effect, risk: 'low' as const, actionDigest: callId, approvalId: null }
  if (isWritten) attempt.rows.push({ ...row('tool_started', write), seq: seq - 1 })
  const isCut = told.ok && told.data === undefined
  if (isCut) attempt.cut.push(seq)
  const data = told.ok && !isCut ? completed(told.data, attempt.shown) : undefined
  attempt.shown.set(`seq ${seq}`, data)
  const body = isCut ? { digest: sha256(content), bytes: content.length, head: content, tail: '' } : null
  const result = {
    ok: told.ok,
    ...(data !== undefined && { data }),
    ...(told.error && { error: told.error }),
    meta: {},
  }
  const outcome = told.ok ? 'done' : 'failed'
  attempt.rows.push({
    ...partOfRow('tool_finished', { ...shared, effect, outcome, result, body, discovered: [] }),
    seq,
  })
  if (isWritten)
    attempt.rows.push({
      ...row('verification', { ...shared, writeSeq: seq - 1, ...verification }),
      seq: verification.seq,
    })
}

function refusedRow(shared: object, { code, message, details }: NonNullable<Told['error']>): IncidentEvent {
  return partOfRow('call_judged', {
    ...shared,
    verdict: 'refuse',
    code: details?.rule ?? code,
    reason: message,
    hint: details?.recovery_hint ?? null,
  })
}

/**
 * A result as it was shown to the model; of one that the recording cuts at most its number is
 * certain.
 */
function read(content: string): Told {
  const whole = parsed(content) as Told | undefined
  if (whole) return { ...whole, meta: { ...whole.meta } }
  return { ok: true, meta: { seq: Number(/"meta":\{"seq":(\d+)/.exec(content)?.[1] ?? 0) } }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function targetsOf({ name, arguments: args }: Call): ResourceRef[] {
  return Object.entries(tools.get(name)?.names ?? {}).flatMap(([field, kinds]) =>
    [args[field]]
      .flat()
      .flatMap((id) => (typeof id === 'string' ? [{ kind: [kinds].flat()[0], id } as ResourceRef] : [])),
  )
}
