import type { ChatMessage } from '../domain/chat.ts'
import { withoutNoise } from '../domain/envelope.ts'
import { fence, inertJson, withoutTemplateTokens } from '../domain/inert-text.ts'
import { introduceMessage } from '../domain/message.ts'
import type { Envelope } from '../domain/tool.ts'
import { cutToFit, parsePrefix } from './cut-result.ts'
import { foldedCharacters } from './fold-looks.ts'
import { coreOf, nameOfCall, noteShown, type ShownThings, showAnswer, summarize } from './shown-result.ts'
import { cut, type ResultEntry, type TranscriptEntry } from './transcript.ts'

/**
 * Renders the conversation as messages: the newest entries complete, the oldest as one line each.
 */

/** Longest result, even if there is more room, because one result must not displace the others. */
const resultLimitCharacters = 16_000
/**
 * Characters of a result for which there is no room: the number of its row, success, and a few of
 * its words.
 */
const stubCharacters = 300
const saidCharacters = 140
/** Longest list of the calls in omitted turns. */
const listCharacters = 4_000

/**
 * Chooses the stored results (bodies) to load within the budget: the newest ones complete, older
 * ones as the head and tail that their rows hold. This limits the work of `think` in a long
 * investigation. The bodies of folded results are always loaded, because folded results need little
 * room, and their text must not change later.
 */
export function bodiesThatFit(entries: readonly TranscriptEntry[], budgetCharacters: number): Set<string> {
  let left = budgetCharacters
  // Counts older results at their short length, because the newest results get the room first.
  for (const entry of entries)
    left -= entry.kind === 'result' ? Math.min(stubCharacters, shortLength(entry)) : shortLength(entry)
  const folded = entries.filter((entry) => entry.kind === 'result' && entry.isFolded)
  const chosen = new Set(folded.flatMap((entry) => (entry.kind === 'result' && entry.body ? entry.body.digest : [])))
  for (const entry of entries.toReversed()) {
    if (entry.kind !== 'result' || entry.isFolded) continue
    const whole = entry.body ? Math.min(entry.body.bytes, resultLimitCharacters) + stubCharacters : shortLength(entry)
    left -= Math.max(0, whole - stubCharacters)
    if (left < 0) break
    if (entry.body) chosen.add(entry.body.digest)
  }
  return chosen
}

function shortLength(entry: TranscriptEntry): number {
  // Adds the protocol's overhead for each call.
  if (entry.kind === 'answer')
    return entry.content.length + JSON.stringify(entry.calls).length + 60 * entry.calls.length
  if (entry.kind === 'correction') return entry.text.length
  if (entry.kind === 'message') return messageText(entry).length
  return entry.kind === 'result' ? resultText(entry, new Map(), new Map()).length : 0
}

function messageText({ by, text }: Pick<Extract<TranscriptEntry, { kind: 'message' }>, 'by' | 'text'>): string {
  return `${introduceMessage(by)}\n${fence('person_message', text)}`
}

/**
 * Writes a result as JSON with `ok`, `error`, `data` and `meta`. A long part is cut within `data`,
 * and `meta` stays whole. `ok` is present only if it is false.
 */
function resultText(entry: ResultEntry, bodies: ReadonlyMap<string, string>, shown: ShownThings): string {
  const { ok, error, meta } = entry.envelope
  const whole = entry.body ? bodies.get(entry.body.digest) : undefined
  const data = dataOf(entry, whole)
  const isCut = entry.body !== null && whole === undefined
  const known = isCut ? new Map() : shown
  const written =
    data === undefined ? undefined : showAnswer(data, entry.call, { where: `seq ${meta.seq}`, shown: known })
  const fitting = written === undefined ? undefined : cutToFit(written, resultLimitCharacters)
  const cut =
    isCut || fitting !== written ? { cut: 'a part of this result is left out: ask for less, or for a part' } : {}
  return inertJson({
    ...(!ok && { ok }),
    ...(error && { error: plainError(error) }),
    ...(fitting !== undefined && { data: fitting }),
    meta: { ...toldOfMeta(meta, entry.call), ...cut },
  })
}

/** Returns the answer, or the beginning of the answer that its row holds. */
function dataOf({ envelope, body }: ResultEntry, whole: string | undefined): unknown {
  return !body ? envelope.data : whole === undefined ? parsePrefix(body.head) : JSON.parse(whole)
}

/**
 * Shortens an old read to the beginnings of its texts and lists, and explains how to get the whole
 * result again.
 */
function foldedText(entry: ResultEntry, bodies: ReadonlyMap<string, string>): string {
  const { meta } = entry.envelope
  const data = withoutNoise(dataOf(entry, entry.body ? bodies.get(entry.body.digest) : undefined))
  const short =
    cutToFit(data, foldedCharacters) ?? cutToFit(data, 2 * foldedCharacters) ?? cutToFit(coreOf(data), foldedCharacters)
  // Shows the whole result if nothing would be left out, because a repetition would show the same.
  if (short === null || short === data) return resultText(entry, bodies, new Map())
  return inertJson({ data: short, meta: { ...toldOfMeta(meta, entry.call), cut: foldedWords } })
}

const foldedWords = 'repeat the call to read it'

/**
 * Leaves out the tool's name if the call has the same name, because each result is under its call.
 */
function toldOfMeta({ tool, ...meta }: Envelope['meta'], call: ResultEntry['call']): Envelope['meta'] {
  return tool === undefined || tool === call?.tool ? meta : { tool, ...meta }
}

/** Leaves out the false flags of an error, and details for which a model has no use. */
function plainError({ code, message, details, ...flags }: NonNullable<Envelope['error']>): Record<string, unknown> {
  const { auto_recoverable: _, status: _status, ...told } = details
  return { code, message, ...Object.fromEntries(Object.entries(flags).filter(([, is]) => is)), details: told }
}

function stubText({ envelope, body }: ResultEntry): string {
  const said = summarize(envelope.error?.message ?? envelope.data ?? parsePrefix(body?.head ?? ''), saidCharacters)
  return inertJson({
    ...(!envelope.ok && { ok: false }),
    said,
    omitted: 'an older result, cut to fit',
    meta: { seq: envelope.meta.seq },
  })
}

/**
 * Writes the texts of results; those before index `kept` are shortened. A part that a shortened
 * result hides is written out at its next occurrence.
 */
function textsOf(entries: readonly TranscriptEntry[], bodies: ReadonlyMap<string, string>, kept: number): string[] {
  const shown: ShownThings = new Map()
  return withTimes(entries).map((entry, index) => {
    if (entry.kind === 'context') noteShown(entry.value, { where: 'the context', shown })
    if (entry.kind !== 'result') return ''
    if (index >= kept) return entry.isFolded ? foldedText(entry, bodies) : resultText(entry, bodies, shown)
    const whole = resultText(entry, bodies, new Map())
    const stub = stubText(entry)
    return whole.length > stub.length ? stub : whole
  })
}

/** Keeps the time of a result only if its minute differs from the minute of the result before. */
function withTimes(entries: readonly TranscriptEntry[]): TranscriptEntry[] {
  let minute: unknown = null
  return entries.map((entry) => {
    if (entry.kind !== 'result' || entry.envelope.meta.at === undefined) return entry
    const { at, ...meta } = entry.envelope.meta
    if (String(at).slice(0, 5) !== minute) {
      minute = String(at).slice(0, 5)
      return entry
    }
    return { ...entry, envelope: { ...entry.envelope, meta } }
  })
}

/**
 * Renders the messages for the model: the opening ones as given, then the conversation within the
 * budget. If the conversation does not fit, the oldest results are shortened. If even short forms
 * do not fit, the oldest turns are replaced by a list of their calls, so that the model knows what
 * it did.
 */
export function renderMessages(
  protocol: 'native' | 'json',
  opening: ChatMessage[],
  entries: readonly TranscriptEntry[],
  bodies: ReadonlyMap<string, string>,
  budgetCharacters: number,
): ChatMessage[] {
  const lengthOf = (texts: string[]) =>
    entries.reduce(
      (sum, entry, at) => sum + (entry.kind === 'result' ? (texts[at] as string).length : shortLength(entry)),
      0,
    )
  let kept = 0
  let texts = textsOf(entries, bodies, kept)
  let total = lengthOf(texts)
  while (total > budgetCharacters && kept < entries.length) {
    for (let left = total; kept < entries.length && left > budgetCharacters; kept += 1)
      left -= Math.max(0, (texts[kept] as string).length - stubCharacters)
    texts = textsOf(entries, bodies, kept)
    total = lengthOf(texts)
  }
  const listed = Math.min(listCharacters, budgetCharacters / 4)
  const first = firstThatFits(entries, texts, total, budgetCharacters - listed, budgetCharacters)
  const said = entries.slice(first).flatMap((entry, at) => toMessage(protocol, entry, texts[first + at] as string))
  return [...opening, ...leftOut(entries.slice(0, first), listed), ...said]
}

/**
 * Finds the first answer from which on everything fits, if the conversation is too long even with
 * short results. A turn is kept completely or left out.
 */
function firstThatFits(
  entries: readonly TranscriptEntry[],
  texts: string[],
  total: number,
  roomWithList: number,
  room: number,
): number {
  if (total <= room) return 0
  let first = 0
  let left = total
  for (const [index, entry] of entries.entries()) {
    if (entry.kind === 'answer') {
      first = index
      if (left <= roomWithList) return first
    }
    left -= entry.kind === 'result' ? (texts[index] as string).length : shortLength(entry)
  }
  return first
}

/**
 * Lists the calls of omitted turns, each with its result in a few words, so that the model does not
 * repeat them.
 */
function leftOut(entries: readonly TranscriptEntry[], maxCharacters: number): ChatMessage[] {
  const turns = entries.filter((entry) => entry.kind === 'answer').length
  if (turns === 0) return []
  const lines = entries.flatMap((entry) => {
    if (entry.kind !== 'result') return []
    const { envelope, body, call } = entry
    const said = summarize(envelope.error?.message ?? envelope.data ?? parsePrefix(body?.head ?? ''), saidCharacters)
    return [
      `seq ${envelope.meta.seq ?? '-'} ${call ? cut(nameOfCall(call)) : ''}: ${envelope.ok ? '' : 'failed, '}${said}`.replace(
        /\s+/g,
        ' ',
      ),
    ]
  })
  const kept: string[] = []
  let room = maxCharacters - 250
  for (const line of lines.toReversed()) {
    room -= line.length + 1
    if (room < 0) break
    kept.unshift(line)
  }
  const before = lines.length - kept.length
  const list = [...(before > 0 ? [`… ${before} calls before these`] : []), ...kept].join('\n')
  const about = `The first ${turns} turns are left out here. These calls were made in them; calling them again gives the same results unless something changed.`
  const content = [about, fence('earlier_calls', list), ...stillTold(entries)].join('\n')
  return [{ role: 'user', content }]
}

/**
 * Limits for the last omitted messages and denials of people. Such messages and denials are kept,
 * shortened, because they are short and matter more than an old result.
 */
const maxKept = 5
const keptCharacters = 300

/** Lists the calls that people denied, with people's words. */
function deniedAmong(entries: readonly TranscriptEntry[]): string[] {
  return entries.flatMap((entry) => {
    if (entry.kind !== 'result' || entry.envelope.error?.details.rule !== 'DENIED') return []
    const call = entry.call ? cut(nameOfCall(entry.call)) : 'a call'
    return [`${call}: ${entry.envelope.error.message}`.slice(0, keptCharacters).toWellFormed()]
  })
}

/** Keeps from omitted turns the states of hypotheses, the denials, and people's messages. */
function stillTold(entries: readonly TranscriptEntry[]): string[] {
  const denied = deniedAmong(entries).slice(-maxKept)
  const causes = entries.flatMap((entry) => (entry.kind === 'answer' && entry.causes ? [entry.causes] : [])).at(-1)
  const messages = entries.filter((entry) => entry.kind === 'message').slice(-maxKept)
  return [
    ...(causes ? [`Your hypotheses:\n${fence('hypotheses', causes.join('\n'))}`] : []),
    ...(denied.length > 0
      ? [`People denied these calls, do not propose them again:\n${fence('denials', denied.join('\n'))}`]
      : []),
    ...messages.map(({ by, text }) => messageText({ by, text: text.slice(0, keptCharacters).toWellFormed() })),
  ]
}

function toMessage(protocol: 'native' | 'json', entry: TranscriptEntry, text: string): ChatMessage[] {
  if (entry.kind === 'context') return []
  if (entry.kind === 'correction')
    return [{ role: 'user', content: `CORRECTION: ${withoutTemplateTokens(entry.text)}` }]
  if (entry.kind === 'message') return [{ role: 'user', content: messageText(entry) }]
  if (entry.kind === 'answer') return [answerMessage(protocol, entry)]
  if (protocol === 'native') return [{ role: 'tool', tool_call_id: entry.callId, content: text }]
  return [{ role: 'user', content: fence('tool_result', text) }]
}

function answerMessage(protocol: 'native' | 'json', entry: Extract<TranscriptEntry, { kind: 'answer' }>): ChatMessage {
  if (protocol === 'native' && entry.calls.length > 0) {
    return {
      role: 'assistant',
      content: entry.content || null,
      tool_calls: entry.calls.map((call) => ({
        id: call.id,
        type: 'function',
        function: { name: call.tool, arguments: JSON.stringify(call.arguments ?? {}) },
      })),
    }
  }
  const call = entry.calls[0]
  const content =
    entry.content || !call
      ? entry.content
      : JSON.stringify({ tool_call: { name: call.tool, parameters: call.arguments ?? {} } })
  return { role: 'assistant', content: content || '(no answer)' }
}
