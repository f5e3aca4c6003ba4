import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { describeFiring } from '../db/alerts/occurrences.ts'
import type { ChatMessage } from '../domain/chat.ts'
import type { BodyRef } from '../domain/event.ts'
import { inventoryKind } from '../domain/registry.ts'
import type { Runbook, RunbookMatch } from '../domain/runbook.ts'
import type { Envelope } from '../domain/tool.ts'
import { matchRunbooks } from '../knowledge/knowledge.ts'
import { readFolder } from '../knowledge/read.ts'
import { parsePrefix } from '../model/cut-result.ts'
import { describeTools } from '../model/describe-tools.ts'
import { foldLooks } from '../model/fold-looks.ts'
import { describeLimits } from '../model/limits.ts'
import { renderMessages } from '../model/messages.ts'
import { showContext, shownFirst } from '../model/shown-result.ts'
import type { TranscriptEntry } from '../model/transcript.ts'
import { renderContext, renderRunbooks } from '../prompts/render.ts'
import { everyTool, measureFirstTurn, sites } from './prompt.ts'
import { report } from './stage.ts'

/**
 * Computes what recorded conversations would cost today: the recorded results, in the messages that
 * Nightshift would send now. A file is a list of requests: `new` messages since the previous
 * response, `answer`, `fresh` if an attempt begins, `bytes` of the whole request, `tools`. This
 * code counts both sides; only `bytes` are as recorded. A part of a result or context that the
 * recording cut is assumed to shrink like the part that it kept. `whole requests, cut parts as they
 * were` counts cut parts in full length. Other texts are unchanged.
 */

const request = z.looseObject({
  bytes: z.number(),
  fresh: z.unknown().optional(),
  tools: z.array(z.string()).default([]),
  duplicateOfThePrevious: z.boolean().optional(),
  new: z.array(z.looseObject({ role: z.string(), content: z.string().nullish(), tool_call_id: z.string().optional() })),
  answer: z
    .looseObject({
      content: z.string().nullish(),
      tool_calls: z
        .array(z.looseObject({ name: z.string(), arguments: z.record(z.string(), z.unknown()) }))
        .default([]),
    })
    .nullish(),
})
type Request = z.infer<typeof request>

type Counts = {
  requests: number
  duplicates: number
  /** Bytes of the results alone, each result counted once. */
  results: { before: number; after: number }
  /** Bytes of all messages after the prompt, over all requests. */
  messages: { before: number; after: number }
  /** Bytes of whole requests, with prompt, tools and runbook. */
  whole: { before: number; after: number }
  /** `whole.after` with the cut parts of results unchanged. */
  uncut: number
  repeats: { before: number; after: number }
  /**
   * Quotes in endings, including refused endings. `before`: quotes that were in an earlier recorded
   * message. `after`: these quotes that are in the messages of today.
   */
  quotes: { before: number; after: number }
  /** Bytes of contexts, each counted once. */
  contexts: number[]
  /** Bytes of today's requests by part, such as prompt, tools and results, over all requests. */
  parts: Record<string, number>
}

const sides = () => ({ before: 0, after: 0 })
const bytes = (text: string | null | undefined) => Buffer.byteLength(text ?? '')

export async function played(directory: string | undefined): Promise<void> {
  const files = directory ? readdirSync(directory).filter((name) => /^\d.*\.json$/.test(name)) : []
  if (!directory || files.length === 0)
    return void console.log(
      'played: give --dir with recorded conversations, a JSON file each, whose names begin with a number',
    )
  const { runbooks } = await readFolder('shipped', fileURLToPath(new URL('../knowledge', import.meta.url)))
  const all = files.sort().map((name) => {
    const requests = z.array(request).parse(JSON.parse(readFileSync(join(directory, name), 'utf8')))
    const counted = countConversation(requests, runbooks)
    return [name.slice(0, 20), counted] as const
  })
  console.log(
    'conversation          requests  sent twice   results, bytes      all messages        whole requests      said again',
  )
  for (const [name, counts] of all) console.log(lineOf(name, counts))
  const sum = all.map(([, counts]) => counts).reduce(added)
  console.log(lineOf('all', sum))
  const fewer = ({ before, after }: { before: number; after: number }) => `${((1 - after / before) * 100).toFixed(1)} %`
  report('where the bytes are', shares(sum.parts))
  report('played', {
    'requests sent twice, recorded': sum.duplicates,
    'results: fewer bytes': fewer(sum.results),
    'all messages: fewer bytes': fewer(sum.messages),
    'whole requests: fewer bytes': fewer(sum.whole),
    'whole requests, cut parts as they were: fewer bytes': fewer({ before: sum.whole.before, after: sum.uncut }),
    'quotes of endings that stood in a message, recorded': sum.quotes.before,
    'of these, in a message now': sum.quotes.after,
    contexts: sum.contexts.length,
    'contexts of more than 4,000 bytes': sum.contexts.filter((each) => each > 4_000).length,
    'largest context (bytes)': Math.max(...sum.contexts),
    'things said again, recorded': sum.repeats.before,
    'things said again, now': sum.repeats.after,
  })
}

function shares(parts: Counts['parts']): Record<string, string> {
  const all = Object.values(parts).reduce((sum, each) => sum + each, 0)
  const sorted = Object.entries(parts).sort(([, a], [, b]) => b - a)
  return Object.fromEntries(sorted.map(([key, each]) => [key, `${each} ${((100 * each) / all).toFixed(1)} %`]))
}

function lineOf(name: string, { requests, duplicates, results, messages, whole, repeats }: Counts): string {
  const pair = ({ before, after }: { before: number; after: number }) => `${before} → ${after}`.padEnd(20)
  const head = `${name.padEnd(22)}${String(requests).padEnd(10)}${String(duplicates).padEnd(13)}`
  return `${head}${pair(results)}${pair(messages)}${pair(whole)}${repeats.before} → ${repeats.after}`
}

function added(a: Counts, b: Counts): Counts {
  const both = (key: 'results' | 'messages' | 'whole' | 'repeats' | 'quotes') => ({
    before: a[key].before + b[key].before,
    after: a[key].after + b[key].after,
  })
  return {
    requests: a.requests + b.requests,
    duplicates: a.duplicates + b.duplicates,
    results: both('results'),
    messages: both('messages'),
    whole: both('whole'),
    repeats: both('repeats'),
    quotes: both('quotes'),
    contexts: [...a.contexts, ...b.contexts],
    parts: Object.fromEntries(Object.keys(b.parts).map((key) => [key, (a.parts[key] ?? 0) + (b.parts[key] ?? 0)])),
    uncut: a.uncut + b.uncut,
  }
}

type Talk = {
  entries: TranscriptEntry[]
  context: string
  /** Bytes of all recorded messages up to now. */
  said: number
  results: unknown[]
  opening: Opening
  /** Texts of results that the recording cut. */
  bodies: Map<string, string>
  called: Set<string>
  at: string
  /** The texts of the recorded messages. */
  heard: string[]
  /** How many characters the recording cut from messages other than results. */
  cut: number
  /**
   * The cut characters at today's length. The cut part of a context is assumed to shrink like the
   * kept part.
   */
  cutNow: number
  /** The recorded length of each result, and how many of its characters the recording cut. */
  sizes: { left: number; cut: number }[]
}

/**
 * The first turn as it would be today: bytes of prompt, tools and runbook, and the names of the
 * tools in the recording and today.
 */
type Opening = {
  system: number
  tools: number
  runbook: number
  match: RunbookMatch | null
  former: ReadonlySet<string>
  today: ReadonlySet<string>
  described: Parameters<typeof describeTools>[0]
}

const noOpening: Opening = {
  system: 0,
  tools: 0,
  runbook: 0,
  match: null,
  former: new Set(),
  today: new Set(),
  described: [],
}

function countConversation(requests: Request[], runbooks: readonly Runbook[]): Counts {
  const counts: Counts = {
    requests: 0,
    duplicates: 0,
    results: sides(),
    messages: sides(),
    whole: sides(),
    repeats: sides(),
    quotes: sides(),
    contexts: [],
    parts: {},
    uncut: 0,
  }
  let talk = beginTalk(noOpening)
  let calls: NonNullable<Request['answer']>['tool_calls'] = []
  for (const each of requests) {
    if (each.duplicateOfThePrevious) {
      counts.duplicates += 1
      continue
    }
    if (each.fresh !== undefined) {
      countResults(talk, counts)
      // Keeps the opening of the first attempt, because the recording may have cut the incident's
      // subject from a later context.
      talk = beginTalk(talk.opening)
    }
    for (const message of each.new) hear(talk, message, calls)
    if (each.fresh !== undefined) counts.contexts.push(bytes(talk.context))
    if (talk.opening === noOpening) talk.opening = openingOf(talk.context, runbooks, each.tools)
    if (each.fresh !== undefined) talk.entries.unshift({ kind: 'context', value: shownFirst({}, talk.opening.match) })
    const texts = countRequest(talk, each, counts)
    calls = each.answer?.tool_calls ?? []
    countQuotes(talk, calls, texts, counts)
    answer(talk, each)
  }
  countResults(talk, counts)
  return counts
}

/**
 * Counts one request, with all earlier messages. Returns the texts of the messages as they would be
 * today.
 */
function countRequest(talk: Talk, each: Request, counts: Counts): string[] {
  const entries = foldLooks(talk.entries)
  const messages = renderMessages('native', [], entries, talk.bodies, Number.POSITIVE_INFINITY)
  const first = JSON.stringify({ role: 'user', content: talk.context })
  const results = messages.flatMap(({ role, content }) => (role === 'tool' ? [(content ?? '').length] : []))
  const folded = entries.flatMap((entry) => (entry.kind === 'result' ? [entry.isFolded === true] : []))
  const cutThen = sumOf(talk.sizes.map(({ cut }) => cut))
  const cutLeft = sumOf(talk.sizes.map(({ cut }, at) => (folded[at] ? 0 : cut)))
  // Counts the cut part of a folded result as nothing, because a folded result has a fixed length.
  const cutNow = sumOf(
    talk.sizes.map(({ left, cut }, at) => (folded[at] ? 0 : cut * Math.min(1, (results[at] ?? left) / left))),
  )
  const { system, tools, runbook } = talk.opening
  const said = { context: bytes(first) + talk.cutNow, runbook, ...partsOf(messages), 'results, cut parts': cutNow }
  const opening = { 'system prompt': system, tools, 'tools, asked for': addedTools(talk, each) }
  const [after, now] = [{ ...said, ...opening }, said].map((parts) => sumOf(Object.values(parts))) as [number, number]
  counts.requests += 1
  counts.messages.before += talk.said + talk.cut + cutThen
  counts.messages.after += Math.round(now)
  counts.whole.before += each.bytes
  counts.whole.after += Math.round(after)
  counts.uncut += Math.round(after - cutNow + cutLeft - talk.cutNow + talk.cut)
  for (const [name, size] of Object.entries({ ...said, ...opening }))
    counts.parts[name] = (counts.parts[name] ?? 0) + Math.round(size)
  return [first, ...messages.map(({ content }) => content ?? '')]
}

const sumOf = (sizes: readonly number[]): number => sizes.reduce((sum, each) => sum + each, 0)

/**
 * Counts the bytes of messages by content. The bytes of results are divided into data, errors and
 * their JSON form.
 */
function partsOf(messages: readonly ChatMessage[]): Record<string, number> {
  const parts = { 'results, data': 0, 'results, errors': 0, 'results, form': 0, calls: 0, 'other messages': 0 }
  const inText = (value: unknown) => (value === undefined ? 0 : bytes(JSON.stringify(JSON.stringify(value))) - 2)
  for (const message of messages) {
    const all = bytes(JSON.stringify(message))
    if (message.role !== 'tool') parts[message.role === 'assistant' ? 'calls' : 'other messages'] += all
    else {
      const { data, error } = JSON.parse(message.content ?? '{}')
      parts['results, data'] += inText(data)
      parts['results, errors'] += inText(error)
      parts['results, form'] += all - inText(data) - inText(error)
    }
  }
  return parts
}

const beginTalk = (opening: Opening): Talk => ({
  called: new Set(),
  at: '00:00:00',
  bodies: new Map(),
  ...{ entries: [], context: '', said: 0, results: [], heard: [], cut: 0, cutNow: 0, sizes: [] },
  opening,
})

/** Matches the length that a recording notes where it cut a text. */
const cutMark = /… \[cut, (\d+) characters\]$/

/** Handles a message that the model received: the context, a result, or a correction by code. */
function hear(talk: Talk, { role, content, tool_call_id: id }: Request['new'][number], calls: readonly object[]): void {
  const text = content ?? ''
  const [, context, isWhole] = /<<<DATA incident_context\n(.*?)(\nDATA>>>|$)/s.exec(text) ?? []
  talk.said += bytes(JSON.stringify({ role, content: text, ...(id && { tool_call_id: id }) }))
  talk.heard.push(text)
  const cut = Math.max(0, Number(cutMark.exec(text)?.[1] ?? 0) - text.length)
  if (role === 'tool') talk.sizes.push({ left: text.length, cut })
  else talk.cut += cut
  if (role !== 'tool' && !context) talk.cutNow += cut
  if (context) {
    const raw = parsePrefix(context.replace(cutMark, '')) as Record<string, unknown>
    const known = showContext({ ...raw, alerts: foldRepeats(raw.alerts) })
    talk.context = renderContext(known)
    if (isWhole) talk.context += limitsIn(text.slice(text.indexOf('DATA>>>') + 'DATA>>>'.length))
    talk.cutNow += cut * Math.min(1, talk.context.length / text.length)
    talk.entries.push({ kind: 'context', value: known })
    talk.results.push(raw)
  } else if (text.startsWith('Investigate this incident')) {
    talk.context = text
  } else if (role === 'tool' && id) {
    // Counts only the kept part on both sides if the recording cut a result.
    const { meta, ...read } = (parsePrefix(text) ?? { ok: true, meta: {} }) as Envelope
    // Keeps the last known time if this result has none, because the recording cuts the end of a
    // long result.
    talk.at = String(meta?.at ?? talk.at)
    const envelope = { ...read, meta: { at: talk.at, ...meta } }
    const call = calls[Number(id.split('_')[1])] as { name: string; arguments: Record<string, unknown> } | undefined
    const proposed = call && { tool: call.name, arguments: call.arguments }
    const body = cut > 0 && envelope.data ? bodyOf(talk, envelope.data, cut) : null
    talk.entries.push({ kind: 'result', callId: id, envelope, body, ...(proposed && { call: proposed }) })
    talk.results.push(envelope.data)
  } else if (text.startsWith('CORRECTION: ')) {
    talk.entries.push({ kind: 'correction', text: text.slice('CORRECTION: '.length) })
  }
}

/**
 * Folds the alerts of a recorded context as today's contexts do: each alert once, with how often it
 * fired.
 */
function foldRepeats(alerts: unknown): unknown {
  if (!Array.isArray(alerts)) return alerts
  const same = Object.groupBy(alerts as Alert[], ({ name, labels }) => JSON.stringify([name, labels]))
  return Object.values(same).map((found = []) => {
    const [newest, ...older] = found.toSorted((a, b) => String(b.startsAt).localeCompare(String(a.startsAt)))
    if (older.length === 0) return newest
    const { count: _, ...alert } = newest as Alert
    const since = String(older.at(-1)?.startsAt)
    return { ...alert, fired: describeFiring({ times: found.length, since, shortestMs: null, longestMs: null }) }
  })
}
type Alert = { name: unknown; labels: unknown; startsAt: unknown; count?: unknown }

/** Registers a result of the recorded length, with the part of its text that the recording kept. */
function bodyOf({ bodies }: Talk, data: unknown, cut: number): BodyRef {
  const head = JSON.stringify(data)
  const digest = `d${bodies.size}`
  bodies.set(digest, head)
  return { digest, head, tail: '', bytes: bytes(head) + cut }
}

/** Writes the limits in a text in the wording of today. Other words are unchanged. */
function limitsIn(text: string): string {
  const [whole, turns, tokens, seconds, at] =
    /You have (\d+) turns of [^,]*,[^,]*, (\d+) tokens and (\d+) s of work\. It is (\S+)Z;.*enough\./.exec(text) ?? []
  if (whole === undefined || at === undefined) return text
  const limits = { turns: Number(turns), tokens: Number(tokens), seconds: Number(seconds) }
  return text.replace(whole, describeLimits(limits, { isSingle: false, at }))
}

function answer(talk: Talk, { answer: said }: Request): void {
  const calls = (said?.tool_calls ?? []).map(({ name, arguments: args }, at) => {
    return { id: `c_${at}`, tool: name, arguments: args, problem: null }
  })
  // Removes the limits from earlier results, because only the newest result has the current limits.
  for (const entry of talk.entries) if (entry.kind === 'result') delete entry.envelope.meta.budget
  const entry: TranscriptEntry = { kind: 'answer', content: said?.content ?? '', calls }
  talk.entries.push(entry)
  const [message] = renderMessages('native', [], [entry], new Map(), Number.POSITIVE_INFINITY)
  talk.said += bytes(JSON.stringify(message))
}

const ending = z.object({ claims: z.array(z.object({ quotes: z.array(z.object({ text: z.string() })) })) })

/**
 * Counts the quotes of an ending: those that the model had read then, and those of them that it
 * would read today.
 */
function countQuotes(
  { heard }: Talk,
  calls: NonNullable<Request['answer']>['tool_calls'],
  messages: readonly string[],
  { quotes }: Counts,
): void {
  const [then, now] = [heard, messages].map((texts) => plain(texts.join('\n'))) as [string, string]
  for (const { name, arguments: given } of calls) {
    if (name !== 'resolve_incident' && name !== 'escalate_incident') continue
    const { claims } = ending.safeParse(given).data ?? { claims: [] }
    for (const { text } of claims.flatMap((claim) => claim.quotes)) {
      if (!then.includes(plain(text))) continue
      quotes.before += 1
      if (now.includes(plain(text))) quotes.after += 1
      else if (process.env.SHOW) console.log(`not there now: ${text}`)
    }
  }
}

/** Removes JSON's escapes from a text, once or twice. */
const plain = (text: string): string =>
  text
    .replace(/\\+u003c/g, '<')
    .replace(/\\+u003e/g, '>')
    .replace(/\\+[nrt]/g, ' ')
    .replaceAll('\\', '')
    .replace(/\s+/g, ' ')
    .trim()

/**
 * Counts the results of an attempt, each once. Also counts the parts that an earlier result
 * contained word for word.
 */
function countResults({ entries, results, context, bodies }: Talk, counts: Counts): void {
  const before = entries.flatMap((entry) => {
    if (entry.kind !== 'result') return []
    const { at: _, ...meta } = entry.envelope.meta
    return [JSON.stringify({ ...entry.envelope, meta })]
  })
  const messages = renderMessages('native', [], entries, bodies, Number.POSITIVE_INFINITY)
  const after = messages.flatMap(({ role, content }) => (role === 'tool' ? [content ?? ''] : []))
  counts.results.before += before.reduce((sum, text) => sum + bytes(text), 0)
  counts.results.after += after.reduce((sum, text) => sum + bytes(text), 0)
  counts.repeats.before += countRepeats(results)
  counts.repeats.after += countRepeats([knownIn(context), ...after.map((text) => JSON.parse(text).data)])
}

function knownIn(context: string): unknown {
  return JSON.parse(/^<<<DATA \w+\n(.*)\nDATA>>>/ms.exec(context)?.[1] ?? 'null')
}

/** The shortest repeated text that counts. A shorter text is a name, number or state. */
const minRepeatedCharacters = 100

function countRepeats(results: readonly unknown[]): number {
  const known = new Set<string>()
  let repeats = 0
  const visit = (value: unknown, fresh: string[]): void => {
    if (value === null || typeof value !== 'object') return
    const text = JSON.stringify(value, sortKeys)
    if (text.length >= minRepeatedCharacters && known.has(text)) repeats += 1
    else {
      if (text.length >= minRepeatedCharacters) fresh.push(text)
      for (const inner of Object.values(value)) visit(inner, fresh)
    }
  }
  for (const result of results) {
    const fresh: string[] = []
    visit(result, fresh)
    for (const text of fresh) known.add(text)
  }
  return repeats
}

function sortKeys(_key: string, value: unknown): unknown {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
}

const about = z.looseObject({
  incident: z.looseObject({
    type: z.string(),
    title: z.string(),
    resource: z.looseObject({ kind: inventoryKind }).nullish(),
  }),
})

/**
 * Computes prompt, tools and runbook of the first turn as it would be today, for the incident's
 * kind of resource.
 */
function openingOf(context: string, runbooks: readonly Runbook[], then: readonly string[]): Opening {
  const { type, title, resource } = about.parse(knownIn(context)).incident
  const kind = resource?.kind ?? null
  const match = matchRunbooks(runbooks, { type, kind, words: title })
  const runbook = match.chosen?.body ?? null
  const { system, tools, names, described } = measureFirstTurn(kind, sites.lab, ['prometheus'], {
    runbook,
    words: `${type} ${title}`,
  })
  const runbookText = JSON.stringify({ role: 'user', content: renderRunbooks(match) })
  return { system, tools, runbook: bytes(runbookText), match, former: new Set(then), today: new Set(names), described }
}

/**
 * Counts the bytes of tools that the first turn of today lacks and that the model had requested or
 * called until this request.
 */
function addedTools({ opening: { former, today, described }, called }: Talk, { tools, answer }: Request): number {
  for (const { name } of answer?.tool_calls ?? []) called.add(name)
  const isWanted = (name: string) => !today.has(name) && (called.has(name) || !former.has(name))
  const added = everyTool.filter(({ name }) => tools.includes(name) && isWanted(name))
  return added.length === 0 ? 0 : bytes(JSON.stringify(describeTools(added, described)))
}
