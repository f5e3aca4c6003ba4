import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { sha256 } from '../../../domain/digest.ts'
import type { IncidentEvent } from '../../../domain/event.ts'
import type { ResourceRef } from '../../../domain/resource.ts'
import { tools } from '../../../tools/registry.ts'
import { row } from '../../support/events.ts'

/** An ending that a model played, with the rows it had in front of it. */
export type PlayedEnding = {
  name: string
  incidentId: string
  tool: 'resolve_incident' | 'escalate_incident'
  arguments: { resolution?: string; reason?: string; outcome?: string; claims?: { text: string; evidence: number[] }[] }
  rows: IncidentEvent[]
  bodies: Map<string, string>
  /** Numbers of rows whose result is cut in the recording. */
  cut: number[]
}

type Request = {
  fresh?: string
  duplicateOfThePrevious?: unknown
  new: { role: string; tool_call_id?: string; content: string | null }[]
  answer: { tool_calls?: { name: string; arguments: Record<string, unknown> }[] }
}
type Told = {
  ok: boolean
  data?: unknown
  meta: {
    seq: number
    tool: string
    verification?: { outcome: 'held'; postcondition: string; observed: string; seq: number }
  }
}

const folder = 'test/data/played'

/** Every ending of the recordings, in order. A call that was refused is none. */
export function playedEndings(): PlayedEnding[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .sort()
    .flatMap((name) => endingsOf(name, JSON.parse(readFileSync(join(folder, name), 'utf8')) as Request[]))
}

function endingsOf(file: string, requests: Request[]): PlayedEnding[] {
  const endings: PlayedEnding[] = []
  let attempt = emptyAttempt()
  let calls: NonNullable<Request['answer']['tool_calls']> = []
  for (const request of requests) {
    if (request.duplicateOfThePrevious) continue
    if (request.fresh) attempt = emptyAttempt()
    for (const message of request.new) {
      if (message.role === 'user' && request.fresh) attempt.rows.push(contextRow(attempt, message.content ?? ''))
      if (message.role !== 'tool') continue
      const call = calls[Number(message.tool_call_id?.split('_')[1])]
      if (call) addResult(attempt, message.tool_call_id ?? '', call, message.content ?? '')
    }
    calls = request.answer.tool_calls ?? []
    const ending = calls.find(({ name }) => name === 'resolve_incident' || name === 'escalate_incident')
    if (!ending) continue
    const before = endings.findIndex(
      ({ incidentId, rows }) => incidentId === ending.arguments.id && rows === attempt.rows,
    )
    // One that was refused came again: the last one counts.
    if (before >= 0) endings.splice(before, 1)
    endings.push({
      name: `${file.slice(0, 2)}.${endings.length + 1}`,
      incidentId: String(ending.arguments.id),
      tool: ending.name as PlayedEnding['tool'],
      arguments: ending.arguments as PlayedEnding['arguments'],
      ...attempt,
    })
  }
  return endings
}

function emptyAttempt(): { rows: IncidentEvent[]; bodies: Map<string, string>; cut: number[] } {
  return { rows: [], bodies: new Map(), cut: [] }
}

function bodyOf({ bodies }: { bodies: Map<string, string> }, text: string) {
  const digest = sha256(text)
  bodies.set(digest, text)
  return { digest, bytes: text.length, head: text.slice(0, 1200), tail: text.slice(-600) }
}

function contextRow(attempt: ReturnType<typeof emptyAttempt>, content: string): IncidentEvent {
  const text = /<<<DATA incident_context\n([\s\S]*)\nDATA>>>/.exec(content)?.[1] ?? content
  return { ...row('context_assembled', { context: bodyOf(attempt, text), hintFrom: null }), seq: 3 }
}

function addResult(
  attempt: ReturnType<typeof emptyAttempt>,
  callId: string,
  call: { name: string; arguments: Record<string, unknown> },
  content: string,
): void {
  const told = read(content)
  if (!told.ok) return
  const { seq, verification } = told.meta
  // A command's tool is a write at worst; what was not verified only looked.
  const atWorst = tools.get(call.name)?.effect ?? 'read'
  const effect = verification ? 'write' : atWorst === 'write' ? 'read' : atWorst
  const targets = targetsOf(call)
  const shared = { callId, tool: call.name, arguments: call.arguments, targets }
  if (effect === 'write') {
    attempt.rows.push({
      ...row('tool_started', { ...shared, effect, risk: 'low', actionDigest: callId, approvalId: null }),
      seq: seq - 1,
    })
  }
  const isCut = told.data === undefined
  if (isCut) attempt.cut.push(seq)
  const body = isCut ? { digest: sha256(content), bytes: content.length, head: content, tail: '' } : null
  const result = { ok: true, ...(isCut ? {} : { data: told.data }), meta: {} }
  attempt.rows.push({
    ...row('tool_finished', { ...shared, effect, outcome: 'done', result, body, discovered: [] }),
    seq,
  })
  if (verification)
    attempt.rows.push({
      ...row('verification', { ...shared, writeSeq: seq - 1, ...verification }),
      seq: verification.seq,
    })
}

/** A result as it was shown to the model; of one that the recording cuts only its number is certain. */
function read(content: string): Told {
  try {
    return JSON.parse(content) as Told
  } catch {
    return { ok: true, meta: { seq: Number(/"seq":(\d+)/.exec(content)?.[1]), tool: '' } }
  }
}

function targetsOf({ name, arguments: args }: { name: string; arguments: Record<string, unknown> }): ResourceRef[] {
  return Object.entries(tools.get(name)?.names ?? {}).flatMap(([field, kinds]) =>
    [args[field]]
      .flat()
      .flatMap((id) => (typeof id === 'string' ? [{ kind: [kinds].flat()[0], id } as ResourceRef] : [])),
  )
}
