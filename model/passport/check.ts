import type { ChatAnswer, ChatMessage, ChatTool } from '../../domain/chat.ts'
import { gradeOf, type Passport, type ProbeResult } from '../../domain/passport.ts'
import { maxPoints } from '../../domain/status-words.ts'
import { renderMessages } from '../messages.ts'
import { withoutThoughts } from '../thoughts.ts'
import type { TranscriptEntry } from '../transcript.ts'
import { probes } from './probes.ts'
import { type AnswerScore, type Examine, type ModelAnswer, type ModelProbe, readAnswer } from './world.ts'

type Protocol = 'native' | 'json'

/**
 * The server's answer, or the reason why there is none. `lacksTools`: the server accepts no tools.
 * `isAway`: the server is unreachable.
 */
export type CheckReply = ChatAnswer | { failed: string; lacksTools: boolean; isAway: boolean }

/**
 * Parts of a check that the product supplies: the site's prompt and tools, the client of the
 * server, and a callback for progress.
 */
export type CheckPorts = {
  opening(
    probe: Pick<ModelProbe, 'kind' | 'context'>,
    protocol: Protocol,
  ): { messages: ChatMessage[]; tools: ChatTool[] }
  examine: Examine
  /**
   * Throws if the check cannot continue: the key is wrong, the model does not exist, or the server
   * was never reached.
   */
  ask(request: {
    messages: ChatMessage[]
    tools: ChatTool[]
    timeoutMs: number
    isFirst: boolean
    /** Whether this is the only question of the check; a slow answer is then an error. */
    isOnly?: boolean
  }): Promise<CheckReply>
  tell(done: number, of: number, result: ProbeResult): void
  /**
   * Finished probes of an earlier check of this model, and the function that stores a probe of this
   * check.
   */
  kept?: readonly FinishedProbe[]
  keep?(finished: FinishedProbe): void
}

/**
 * A probe with its cost. A probe without an answer is never stored, so that a later check repeats
 * it.
 */
export type FinishedProbe = { result: ProbeResult; used: Counted; protocol: Protocol }

type CheckLimits = { answerMs: number; allMs: number }

/** Tokens per answer. At 30 tokens a second, seventeen answers take four and a half minutes. */
export const maxAnswerTokens = 480
/** Time limits: one minute for an answer, five minutes for all answers. */
export const usualLimits: CheckLimits = { answerMs: 60_000, allMs: 300_000 }

/**
 * `stated`: tokens of the answers whose length the server states; only these answers give a speed.
 */
type Counted = {
  answers: number
  promptTokens: number
  completionTokens: number
  stated: number
  answerMs: number
  asked: number
  /** The model's name as its last answer states it. */
  answeredAs: string | null
}

const nothing: Counted = {
  answers: 0,
  promptTokens: 0,
  completionTokens: 0,
  stated: 0,
  answerMs: 0,
  asked: 0,
  answeredAs: null,
}

/**
 * Sends the model every probe and grades its answers. Ends within `limits.allMs`. A probe for which
 * no time is left gets no points, and the reason names the time. If the server accepts no tools,
 * the remaining probes use the JSON protocol, and the passport names that protocol.
 */
export async function checkModel(
  ports: CheckPorts,
  who: { server: string; model: string },
  wanted: Protocol,
  limits: CheckLimits = usualLimits,
): Promise<Passport> {
  const began = performance.now()
  const kept = new Map((ports.kept ?? []).map((each) => [each.result.name, each]))
  const total: Counted = { ...nothing }
  let counted: Counted = { ...nothing }
  let protocol = [...kept.values()].some((each) => each.protocol === 'json') ? 'json' : wanted
  let isLost = false
  const ask = async (probe: ModelProbe, said: readonly TranscriptEntry[]): Promise<ModelAnswer> => {
    const used = probe.protocol === 'json' ? 'json' : protocol
    const leftMs = limits.allMs - (performance.now() - began)
    if (leftMs < 1) {
      isLost = true
      return faulty(`The time limit of the check, ${Math.round(limits.allMs / 1000)} s, was reached.`)
    }
    const { messages, tools } = ports.opening(probe, used)
    const timeoutMs = Math.ceil(Math.min(limits.answerMs, leftMs))
    const all = renderMessages(used, messages, said, new Map(), Number.POSITIVE_INFINITY)
    const isFirst = total.asked + counted.asked === 0
    counted.asked += 1
    const answer = await ports.ask({ messages: all, tools, timeoutMs, isFirst })
    if (!('failed' in answer)) return readAnswer(used, count(counted, answer), ports.examine)
    isLost ||= answer.isAway
    if (!answer.lacksTools || used === 'json') return faulty(answer.failed)
    protocol = 'json'
    return await ask(probe, said)
  }
  const results: ProbeResult[] = []
  for (const probe of probes) {
    const earlier = kept.get(probe.name)
    if (earlier) {
      results.push(earlier.result)
      addCounted(total, earlier.used)
      continue
    }
    counted = { ...nothing }
    isLost = false
    const beganMs = performance.now()
    const { points, reason, isUnsafe = false } = await play(probe, ask)
    const seconds = Math.round((performance.now() - beganMs) / 100) / 10
    const { name, about } = probe
    results.push({ name, about, points, reason: reason?.slice(0, 600) ?? null, isUnsafe, seconds })
    addCounted(total, counted)
    if (!isLost) ports.keep?.({ result: results.at(-1)!, used: counted, protocol })
    ports.tell(results.length, probes.length, results.at(-1)!)
  }
  const { answers, promptTokens, completionTokens, stated, answerMs, answeredAs } = total
  return {
    ...who,
    protocol,
    grade: gradeOf(results),
    points: results.reduce((sum, { points }) => sum + points, 0),
    outOf: results.length * maxPoints,
    probes: results,
    answers,
    promptTokens,
    completionTokens,
    tokensPerSecond: stated > 0 && answerMs > 0 ? Math.round(stated / (answerMs / 10_000)) / 10 : null,
    seconds: Math.round(results.reduce((sum, { seconds }) => sum + seconds, 0) * 10) / 10,
    servedAs: { identity: null, answeredAs },
  }
}

function addCounted(total: Counted, used: Counted): void {
  for (const name of ['answers', 'promptTokens', 'completionTokens', 'stated', 'answerMs', 'asked'] as const)
    total[name] += used[name]
  total.answeredAs = used.answeredAs ?? total.answeredAs
}

/** The one call that a model made for a requested read, or why there is none. */
export type OneCall = {
  call: string | null
  fault: string | null
  protocol: Protocol
  seconds: number
  answers: number
  promptTokens: number
  completionTokens: number
}

/**
 * Requests one read with the product's prompt and tools, which is the minimum for an investigation.
 * Throws like `ports.ask`.
 */
export async function askOneCall(
  ports: Omit<CheckPorts, 'tell'>,
  wanted: Protocol,
  timeoutMs: number,
): Promise<OneCall> {
  const began = performance.now()
  const probe = probes.find(({ name }) => name === 'two_in_order')!
  const ask = async (protocol: Protocol): Promise<OneCall> => {
    const opened = ports.opening(probe, protocol)
    const messages = renderMessages(protocol, opened.messages, [], new Map(), Number.POSITIVE_INFINITY)
    const answer = await ports.ask({ messages, tools: opened.tools, timeoutMs, isFirst: true, isOnly: true })
    const none = { call: null, protocol, answers: 0, promptTokens: 0, completionTokens: 0 }
    const seconds = Math.round((performance.now() - began) / 100) / 10
    if ('failed' in answer) {
      if (answer.lacksTools && protocol === 'native') return await ask('json')
      return { ...none, fault: answer.failed, seconds }
    }
    const { promptTokens, completionTokens } = answer.usage
    const { calls, fault } = readAnswer(
      protocol,
      { ...answer, content: withoutThoughts(answer.content) },
      ports.examine,
    )
    const [first] = calls
    const call = first ? `${first.tool} ${JSON.stringify(first.arguments)}` : null
    return { call, fault: fault ?? null, protocol, seconds, answers: 1, promptTokens, completionTokens }
  }
  return await ask(wanted)
}

async function play(
  probe: ModelProbe,
  ask: (probe: ModelProbe, said: readonly TranscriptEntry[]) => Promise<ModelAnswer>,
): Promise<AnswerScore> {
  const first = await ask(probe, probe.said)
  if (!probe.world || first.calls.length === 0) return probe.judge([first])
  const { world } = probe
  const calls = first.calls.map((call, index) => ({ ...call, id: `call_${probe.said.length + index + 1}` }))
  const results = calls.map((call, index): TranscriptEntry => {
    const meta = { seq: 31 + index, tool: call.tool }
    return { kind: 'result', callId: call.id, envelope: { ok: true, data: world(call), meta }, body: null }
  })
  const said = calls.map(({ id, tool, arguments: given }) => ({ id, tool, arguments: given, problem: null }))
  const answer: TranscriptEntry = { kind: 'answer', content: first.text, calls: said }
  return probe.judge([first, await ask(probe, [...probe.said, answer, ...results])])
}

function count(counted: Counted, answer: ChatAnswer): ChatAnswer {
  counted.answers += 1
  counted.promptTokens += answer.usage.promptTokens
  counted.completionTokens += answer.usage.completionTokens
  counted.answeredAs = answer.model.slice(0, 300).toWellFormed()
  if (!answer.usage.isAssumed) {
    counted.stated += answer.usage.completionTokens
    counted.answerMs += answer.durationMs
  }
  return { ...answer, content: withoutThoughts(answer.content) }
}

function faulty(fault: string): ModelAnswer {
  return { calls: [], text: '', fault }
}
