import { useMemo, useState } from 'react'
import type { IncidentEvent } from '../../domain/event.ts'
import { formatSpan, truncate } from '../../domain/format.ts'
import { formatVerification } from '../../domain/format-approval.ts'
import { listReadings } from '../../domain/message.ts'
import { sayAction } from '../../domain/say.ts'
import { describeEnd } from '../../domain/status-words.ts'
import { Inert } from '../inert.tsx'
import { Markdown } from '../markdown.tsx'
import { Sign } from '../marks.tsx'
import { PlanOfProposal } from '../plan/plan.tsx'
import { Link } from '../router.tsx'
import { formatBothZones, formatTimeOfDay } from '../time.ts'
import { ReadingOf } from './reading.tsx'
import { RowLink } from './row-link.tsx'
import { formatResult, getSign } from './rows.ts'
import { getProposalId, getText } from './timeline.tsx'

/** All rows of one call. */
type Call = { key: string; tool: string; rows: IncidentEvent[] }
/** A response of the model with what it caused, or a row that belongs to no turn. */
type Item =
  | {
      kind: 'turn'
      key: string
      attempt: number
      turn: number
      first: IncidentEvent
      rows: IncidentEvent[]
      calls: Call[]
    }
  | { kind: 'row'; key: string; event: IncidentEvent }
type Turn = Extract<Item, { kind: 'turn' }>

/** Kinds of rows that add nothing to the brief or to a turn. */
const quiet = new Set<string>(['context_assembled', 'notified', 'tool_output', 'grant_used', 'hint_confirmed'])
/** A note of the agent is shown in its call, or in its response. */
const isQuiet = ({ kind, actor }: IncidentEvent) =>
  quiet.has(kind) || (kind === 'commented' && actor.startsWith('agent:'))

/**
 * A write that a person made directly has no model. The call is shown under the person's name, with
 * each row separate.
 */
const isOfPerson = ({ actor }: IncidentEvent) => actor.startsWith('user:')

/** Groups the log into turns, oldest first. The rows of a call are in its turn. Pure and total. */
function foldTurns(events: readonly IncidentEvent[]): Item[] {
  const items: Item[] = []
  const turns = new Map<string, Turn>()
  const calls = new Map<string, Call>()
  const turnAt = (event: IncidentEvent, turn: number): Turn => {
    const key = `${event.attempt}.${turn}`
    const known = turns.get(key)
    if (known) return known
    const begun: Turn = { kind: 'turn', key, attempt: event.attempt, turn, first: event, rows: [], calls: [] }
    turns.set(key, begun)
    items.push(begun)
    return begun
  }
  for (const event of events) {
    if (isQuiet(event)) continue
    const { callId, tool } = event.metadata as { callId?: unknown; tool?: unknown }
    const key = typeof callId === 'string' ? `${event.attempt}/${callId}` : null
    const known = key === null ? undefined : calls.get(key)
    if (known) known.rows.push(event)
    else if (event.turn === null || (key === null && isOfPerson(event)))
      items.push({ kind: 'row', key: `row ${event.seq}`, event })
    else if (key === null) turnAt(event, event.turn).rows.push(event)
    else {
      const call: Call = { key, tool: typeof tool === 'string' ? tool : '', rows: [event] }
      calls.set(key, call)
      turnAt(event, event.turn).calls.push(call)
    }
  }
  return items
}

/** Shows what happened, with a line per turn. Findings and actions are below the line. */
export function Investigation({ events }: { events: readonly IncidentEvent[] }) {
  const items = useMemo(() => foldTurns(events), [events])
  const readings = useMemo(() => listReadings(events), [events])
  const newest = items.findLast((item) => item.kind === 'turn')
  if (items.length === 0) return <p className="nothing">Nothing has happened yet.</p>
  return (
    <ol className="turns">
      {items.map((item) =>
        item.kind === 'row' ? (
          <Row key={item.key} event={item.event} reading={readings.get(item.event.seq)} />
        ) : (
          <TurnLine key={item.key} turn={item} isOpen={item === newest} />
        ),
      )}
    </ol>
  )
}

function Row({ event, reading }: { event: IncidentEvent; reading: string | undefined }) {
  const { shape, tone, word } = getSign(event)
  const isEnd = event.kind === 'resolved' || event.kind === 'escalated' || event.kind === 'cancelled'
  // Describes how the incident ended. The brief has the reason.
  const text = isEnd ? describeEnd(event) : truncate(getText(event), 200)
  const by = isOfPerson(event) ? event.actor.slice('user:'.length) : ''
  return (
    <li className="turn-row">
      <Time event={event} />
      <span className={`mark tone-${tone}`}>
        <Sign shape={shape} />
        {word}
      </span>
      <span className="wraps">
        <Inert text={text} />{' '}
        {(by || reading) && (
          <span className="soft small">
            <Inert text={[by, reading].filter(Boolean).join(' · ')} />{' '}
          </span>
        )}
        <RowLink seq={event.seq} />
      </span>
    </li>
  )
}

function Time({ event: { at } }: { event: IncidentEvent }) {
  return (
    <time dateTime={at} title={formatBothZones(at)}>
      {formatTimeOfDay(at)}
    </time>
  )
}

function TurnLine({ turn, isOpen }: { turn: Turn; isOpen: boolean }) {
  const [open, setOpen] = useState(isOpen)
  const { first, rows, calls } = turn
  const answered = rows.find((event): event is IncidentEvent<'model_answered'> => event.kind === 'model_answered')
  const words = answered ? answered.metadata.final?.text || answered.metadata.content : ''
  const short = truncate(/^.*?[.!?](?=\s|$)/s.exec(words.trim())?.[0] ?? words.trim(), 160)
  const states = calls.map((call) => tellCall(call))
  const worst = states.find(({ tone }) => tone === 'broken') ?? states.find(({ tone }) => tone === 'act')
  const last = Date.parse(([...rows, ...calls.flatMap((call) => call.rows)].at(-1) ?? first).at)
  const others = rows.filter((event) => event !== answered)
  const isWhole = calls.length === 0 && others.length === 0 && words.trim() === short
  if (isWhole) {
    return (
      <li className="turn-row">
        <Time event={first} />
        <strong>Turn {turn.turn}</strong>
        <span className="wraps">
          <Inert text={short} /> <RowLink seq={first.seq} />
        </span>
      </li>
    )
  }
  return (
    <li className="turn">
      <details open={open} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
        <summary>
          <Time event={first} />{' '}
          <Inert as="strong" text={isOfPerson(first) ? first.actor.slice('user:'.length) : nameTurn(turn)} />{' '}
          <Inert className="wraps" text={short || namesOf(calls)} />{' '}
          <span className="soft small">
            {calls.length === 0 ? '' : `${calls.length} ${calls.length === 1 ? 'call' : 'calls'} · `}
            {formatSpan(last - Date.parse(first.at) + (answered?.metadata.durationMs ?? 0))}
          </span>
          {worst && (
            <span className={`mark tone-${worst.tone}`}>
              <Sign shape={worst.shape} />
              {worst.word}
            </span>
          )}
        </summary>
        {open && (
          <div className="stack tight turn-body">
            {words.trim() !== short && <Markdown text={words} />}
            {others.map((event) => (
              <p key={event.seq} className="wraps">
                <span className={`tone-${getSign(event).tone}`}>{getSign(event).word}:</span>{' '}
                <Inert text={getText(event)} /> <RowLink seq={event.seq} />
              </p>
            ))}
            <ul className="findings stack tight">
              {calls.map((call) => (
                <CallLine key={call.key} call={call} />
              ))}
            </ul>
          </div>
        )}
      </details>
    </li>
  )
}

/** The first reads of a follower are made by code, and are shown before the model's first turn. */
const nameTurn = ({ turn }: Turn) => (turn === 0 ? 'Before turn 1' : `Turn ${turn}`)

const namesOf = (calls: readonly Call[]) => calls.map(({ tool }) => tool).join(', ') || 'No answer'

function CallLine({ call }: { call: Call }) {
  const { shape, tone, word, text, seq } = tellCall(call)
  const finished = call.rows.find((event): event is IncidentEvent<'tool_finished'> => event.kind === 'tool_finished')
  const asked = call.rows.findLast((event) => event.kind === 'approval_requested')
  const proof = call.rows.findLast((event) => event.kind === 'verification')
  const proposalId = finished && getProposalId(finished)
  return (
    <li>
      <span className={`mark tone-${tone}`} title={call.tool}>
        <Sign shape={shape} />
        <span className="visually-hidden">{word}: </span>
      </span>{' '}
      <span className="wraps">
        <Inert text={text} /> <RowLink seq={seq} />
        {asked?.kind === 'approval_requested' && (
          <>
            {' '}
            <Link href={`/approvals/${asked.metadata.approvalId}`}>the approval</Link>
          </>
        )}
      </span>
      {proof?.kind === 'verification' && proof.metadata.outcome !== 'open' && (
        <p className="wraps">
          <strong>{formatVerification(proof.metadata.outcome)}:</strong> <Inert text={proof.metadata.observed} />{' '}
          <RowLink seq={proof.seq} />
        </p>
      )}
      {proposalId && <PlanOfProposal id={proposalId} />}
      {finished && <ReadingOf event={finished} />}
    </li>
  )
}

/** Returns the newest row of a call that describes its outcome, as a sentence. */
function tellCall({ tool, rows }: Call) {
  const telling =
    rows.findLast(({ kind }) => !['verification', 'step_started', 'step_finished'].includes(kind)) ?? rows[0]
  const event = rows.findLast(({ kind }) => kind === 'tool_finished') ?? telling
  if (!event) return { ...getSign({ kind: 'noted', metadata: { code: 'quiet' } } as IncidentEvent), text: tool, seq: 0 }
  const sign = getSign(event)
  if (event.kind === 'tool_finished') {
    const { said, result } = event.metadata
    return { ...sign, seq: event.seq, text: said ?? `${tool}: ${formatResult(result)}` }
  }
  if (event.kind === 'approval_requested')
    return { ...sign, seq: event.seq, text: `Approval requested: ${sayAction(event.metadata.summary)}` }
  if (event.kind === 'call_judged') {
    const { reason } = event.metadata
    return { ...sign, seq: event.seq, text: reason.startsWith(`${tool}: `) ? reason : `${tool}: ${reason}` }
  }
  if (event.kind === 'tool_started') return { ...sign, seq: event.seq, text: `${tool} runs` }
  return { ...sign, seq: event.seq, text: event.detail }
}
