import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { inventoryKind } from '../domain/registry.ts'
import type { Runbook, RunbookMatch } from '../domain/runbook.ts'
import type { Envelope } from '../domain/tool.ts'
import { matchRunbooks } from '../knowledge/knowledge.ts'
import { readFolder } from '../knowledge/read.ts'
import { parsePrefix } from '../model/cut-result.ts'
import { describeTools } from '../model/describe-tools.ts'
import { renderMessages } from '../model/messages.ts'
import { showContext, shownFirst } from '../model/shown-result.ts'
import type { TranscriptEntry } from '../model/transcript.ts'
import { renderContext, renderRunbooks } from '../prompts/render.ts'
import { everyTool, measureFirstTurn, sites } from './prompt.ts'
import { report } from './stage.ts'

/**
 * Recorded conversations at today's cost: the same results, from the files, in the messages we
 * would send. A file is a list of requests: `new` messages since the answer before, `answer`,
 * `fresh` where an attempt begins, `bytes` of the whole request, `tools`. This code counts both
 * sides; only whole requests' `bytes` are as recorded. A result's cut part is taken to shrink as
 * the rest did; `whole requests, cut parts as they were` counts it in full. Other texts are as they
 * were.
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
  /** Results alone, each once. */
  results: { before: number; after: number }
  /** All messages after the prompt, over all requests. */
  messages: { before: number; after: number }
  /** Whole requests, with prompt, tools and runbook. */
  whole: { before: number; after: number }
  /** `whole.after`, were the cut parts of results as they were. */
  uncut: number
  repeats: { before: number; after: number }
  /** Quotes of endings, refused ones too: those in a message before them, and those there today. */
  quotes: { before: number; after: number }
  /** Bytes of contexts, each once. */
  contexts: number[]
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
    uncut: a.uncut + b.uncut,
  }
}

type Talk = {
  entries: TranscriptEntry[]
  context: string
  /** As recorded: bytes of all messages so far, and the parsed results. */
  said: number
  results: unknown[]
  opening: Opening
  /** Messages as recorded. */
  heard: string[]
  /** Characters that the recording cut out of what was heard besides results. */
  cut: number
  /** Each result's recorded length, and its full one. */
  sizes: { left: number; cut: number }[]
}

/**
 * A first turn of today: bytes of prompt, tools and runbook, and the tools' names, then and now.
 */
type Opening = {
  first: number
  runbook: number
  match: RunbookMatch | null
  former: ReadonlySet<string>
  today: ReadonlySet<string>
}

const noOpening: Opening = { first: 0, runbook: 0, match: null, former: new Set(), today: new Set() }

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
      // Where a recording cut a later attempt's context, the incident's first tells its subject.
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

/** One request, with all that was said by then; answers the texts of today's messages. */
function countRequest(talk: Talk, each: Request, counts: Counts): string[] {
  const messages = renderMessages('native', [], talk.entries, new Map(), Number.POSITIVE_INFINITY)
  const first = JSON.stringify({ role: 'user', content: talk.context })
  const now = [first, ...messages.map((message) => JSON.stringify(message))].reduce(
    (sum, text) => sum + bytes(text),
    talk.cut + talk.opening.runbook,
  )
  const results = messages.flatMap(({ role, content }) => (role === 'tool' ? [(content ?? '').length] : []))
  const cutThen = talk.sizes.reduce((sum, { cut }) => sum + cut, 0)
  const cutNow = talk.sizes.reduce((sum, { left, cut }, at) => sum + cut * Math.min(1, (results[at] ?? left) / left), 0)
  counts.requests += 1
  counts.messages.before += talk.said + talk.cut + cutThen
  counts.messages.after += Math.round(now + cutNow)
  counts.whole.before += each.bytes
  const opening = talk.opening.first + addedTools(talk.opening, each.tools)
  counts.whole.after += Math.round(now + cutNow + opening)
  counts.uncut += now + cutThen + opening
  return [first, ...messages.map(({ content }) => content ?? '')]
}

const beginTalk = (opening: Opening): Talk => ({
  ...{ entries: [], context: '', said: 0, results: [], heard: [], cut: 0, sizes: [] },
  opening,
})

/** Where a recording cut a text it says how long it was. */
const cutMark = /… \[cut, (\d+) characters\]$/

/** A message that came in: the context, a result, or a word of code. */
function hear(talk: Talk, { role, content, tool_call_id: id }: Request['new'][number], calls: readonly object[]): void {
  const text = content ?? ''
  const context = /<<<DATA incident_context\n(.*)\nDATA>>>/s.exec(text)?.[1]
  talk.said += bytes(JSON.stringify({ role, content: text, ...(id && { tool_call_id: id }) }))
  talk.heard.push(text)
  const cut = Math.max(0, Number(cutMark.exec(text)?.[1] ?? 0) - text.length)
  if (role === 'tool') talk.sizes.push({ left: text.length, cut })
  else talk.cut += cut
  if (context) {
    const known = showContext(JSON.parse(context))
    // Behind it stand the limits, which are as they were.
    talk.context = renderContext(known) + text.slice(text.indexOf('DATA>>>') + 'DATA>>>'.length)
    talk.entries.push({ kind: 'context', value: known })
    talk.results.push(JSON.parse(context))
  } else if (text.startsWith('Investigate this incident')) {
    talk.context = text
  } else if (role === 'tool' && id) {
    // A recording may cut a result: what is there of it is what both sides count.
    const { meta, ...read } = (parsePrefix(text) ?? { ok: true, meta: {} }) as Envelope
    // Today each has its time.
    const envelope = { ...read, meta: { ...meta, at: '00:00:00' } }
    const call = calls[Number(id.split('_')[1])] as { name: string; arguments: Record<string, unknown> } | undefined
    const proposed = call && { tool: call.name, arguments: call.arguments }
    talk.entries.push({ kind: 'result', callId: id, envelope, body: null, ...(proposed && { call: proposed }) })
    talk.results.push(envelope.data)
  } else if (text.startsWith('CORRECTION: ')) {
    talk.entries.push({ kind: 'correction', text: text.slice('CORRECTION: '.length) })
  }
}

function answer(talk: Talk, { answer: said }: Request): void {
  const calls = (said?.tool_calls ?? []).map(({ name, arguments: args }, at) => {
    return { id: `c_${at}`, tool: name, arguments: args, problem: null }
  })
  const entry: TranscriptEntry = { kind: 'answer', content: said?.content ?? '', calls }
  talk.entries.push(entry)
  const [message] = renderMessages('native', [], [entry], new Map(), Number.POSITIVE_INFINITY)
  talk.said += bytes(JSON.stringify(message))
}

const ending = z.object({ claims: z.array(z.object({ quotes: z.array(z.object({ text: z.string() })) })) })

/** Quotes of an ending: those that its model had read, and those it would read today. */
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

/** Without what JSON wraps around a text, once or twice. */
const plain = (text: string): string =>
  text
    .replace(/\\+u003c/g, '<')
    .replace(/\\+u003e/g, '>')
    .replace(/\\+[nrt]/g, ' ')
    .replaceAll('\\', '')
    .replace(/\s+/g, ' ')
    .trim()

/** An attempt's results, each once, and parts that an earlier one had word for word. */
function countResults({ entries, results, context }: Talk, counts: Counts): void {
  const before = entries.flatMap((entry) => {
    if (entry.kind !== 'result') return []
    const { at: _, ...meta } = entry.envelope.meta
    return [JSON.stringify({ ...entry.envelope, meta })]
  })
  const messages = renderMessages('native', [], entries, new Map(), Number.POSITIVE_INFINITY)
  const after = messages.flatMap(({ role, content }) => (role === 'tool' ? [content ?? ''] : []))
  counts.results.before += before.reduce((sum, text) => sum + bytes(text), 0)
  counts.results.after += after.reduce((sum, text) => sum + bytes(text), 0)
  counts.repeats.before += countRepeats(results)
  counts.repeats.after += countRepeats([knownIn(context), ...after.map((text) => JSON.parse(text).data)])
}

function knownIn(context: string): unknown {
  return JSON.parse(/^<<<DATA \w+\n(.*)\nDATA>>>/ms.exec(context)?.[1] ?? 'null')
}

/** Shorter things are names, figures and states. */
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

/** Prompt, tools and runbook of today's first turn, for the kind that an incident is about. */
function openingOf(context: string, runbooks: readonly Runbook[], then: readonly string[]): Opening {
  const { type, title, resource } = about.parse(knownIn(context)).incident
  const kind = resource?.kind ?? null
  const match = matchRunbooks(runbooks, { type, kind, words: title })
  const runbook = match.chosen?.body ?? null
  const { first, names } = measureFirstTurn(kind, sites.lab, ['prometheus'], { runbook, words: `${type} ${title}` })
  const runbookText = JSON.stringify({ role: 'user', content: renderRunbooks(match) })
  return { first, runbook: bytes(runbookText), match, former: new Set(then), today: new Set(names) }
}

/** Bytes of the tools that the model had asked for by then and today's first turn lacks. */
function addedTools({ former, today }: Opening, offered: readonly string[]): number {
  const added = offered.filter((name) => !former.has(name) && !today.has(name))
  return added.length === 0
    ? 0
    : bytes(JSON.stringify(describeTools(everyTool.filter(({ name }) => added.includes(name)))))
}
