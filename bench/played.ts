import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { inventoryKind } from '../domain/registry.ts'
import type { Runbook } from '../domain/runbook.ts'
import type { Envelope } from '../domain/tool.ts'
import { matchRunbooks } from '../knowledge/knowledge.ts'
import { readFolder } from '../knowledge/read.ts'
import { renderMessages } from '../model/messages.ts'
import { parsePrefix, showContext } from '../model/shown-result.ts'
import type { TranscriptEntry } from '../model/transcript.ts'
import { renderContext, renderRunbooks } from '../prompts/render.ts'
import { measureFirstTurn, sites } from './prompt.ts'
import { report } from './stage.ts'

/**
 * What recorded conversations would cost today: the same results, as the files hold them, in the messages that we would send. A file is
 * a list of requests: `new` messages since the answer before, `answer`, `fresh` where an attempt begins, `bytes` of the whole request.
 * Both sides are counted by this code; only `bytes` of whole requests is as it was recorded.
 */

const request = z.looseObject({
  bytes: z.number(),
  fresh: z.unknown().optional(),
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
  /** Of results alone, each once. */
  results: { before: number; after: number }
  /** Of all messages behind the prompt, over all requests. */
  messages: { before: number; after: number }
  /** Of whole requests, with prompt, tools and runbook. */
  whole: { before: number; after: number }
  repeats: { before: number; after: number }
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
  const both = (key: 'results' | 'messages' | 'whole' | 'repeats') => ({
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
  }
}

type Talk = {
  entries: TranscriptEntry[]
  context: string
  /** As recorded: bytes of all messages so far, and the parsed results. */
  said: number
  results: unknown[]
  opening: number
}

function countConversation(requests: Request[], runbooks: readonly Runbook[]): Counts {
  const counts: Counts = {
    requests: 0,
    duplicates: 0,
    results: sides(),
    messages: sides(),
    whole: sides(),
    repeats: sides(),
  }
  let talk: Talk = { entries: [], context: '', said: 0, results: [], opening: 0 }
  let calls: NonNullable<Request['answer']>['tool_calls'] = []
  for (const each of requests) {
    if (each.duplicateOfThePrevious) {
      counts.duplicates += 1
      continue
    }
    if (each.fresh !== undefined) {
      countResults(talk, counts)
      // Where a recording cut the context of a later attempt, its incident's first one tells what it is about.
      talk = { entries: [], context: '', said: 0, results: [], opening: talk.opening }
    }
    for (const message of each.new) hear(talk, message, calls)
    if (talk.opening === 0) talk.opening = openingOf(talk.context, runbooks)
    const messages = renderMessages('native', [], talk.entries, new Map(), Number.POSITIVE_INFINITY)
    const now = bytes(talk.context) + messages.reduce((sum, message) => sum + bytes(JSON.stringify(message)), 0)
    counts.requests += 1
    counts.messages.before += talk.said
    counts.messages.after += now
    counts.whole.before += each.bytes
    counts.whole.after += now + talk.opening
    calls = each.answer?.tool_calls ?? []
    answer(talk, each)
  }
  countResults(talk, counts)
  return counts
}

/** A message that came in: the context, a result, or a word of code. */
function hear(talk: Talk, { role, content, tool_call_id: id }: Request['new'][number], calls: readonly object[]): void {
  const text = content ?? ''
  const context = /<<<DATA incident_context\n(.*)\nDATA>>>/s.exec(text)?.[1]
  talk.said += bytes(JSON.stringify({ role, content: text, ...(id && { tool_call_id: id }) }))
  if (context) {
    const known = showContext(JSON.parse(context))
    talk.context = renderContext(known)
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

/** Results of an attempt, each once, and the things in them that an earlier one had said word for word. */
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
function openingOf(context: string, runbooks: readonly Runbook[]): number {
  const { type, title, resource } = about.parse(knownIn(context)).incident
  const kind = resource?.kind ?? null
  const match = matchRunbooks(runbooks, { type, kind, words: title })
  const runbook = match.chosen?.body ?? null
  const { first } = measureFirstTurn(kind, sites.lab, ['prometheus'], { runbook, words: `${type} ${title}` })
  return first + bytes(renderRunbooks(match))
}
