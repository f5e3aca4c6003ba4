import type { ChatAnswer, ChatMessage, ChatTool } from '../../../domain/chat.ts'
import type { EventMetadata, IncidentEvent } from '../../../domain/event.ts'
import { unreadOf } from '../../../domain/message.ts'
import { runbookMatch } from '../../../domain/runbook.ts'
import { callId } from '../../../domain/step-key.ts'
import { readToolName } from '../../../domain/tool-name.ts'
import { addedBy, chooseAdded, isWithoutResource } from '../../../model/added-tools.ts'
import { foldLooks } from '../../../model/fold-looks.ts'
import { describeLimits } from '../../../model/limits.ts'
import { renderMessages } from '../../../model/messages.ts'
import { type ParsedAnswer, parseAnswer } from '../../../model/protocol.ts'
import { readCall } from '../../../model/read-call.ts'
import { showContext, shownFirst } from '../../../model/shown-result.ts'
import { withoutThoughts } from '../../../model/thoughts.ts'
import { conversation, type TranscriptEntry, withStanding } from '../../../model/transcript.ts'
import { shownIn } from '../../../model/written-calls.ts'
import { type Prompts, renderAsJson, renderContext, renderHint, renderRunbooks } from '../../../prompts/render.ts'
import { fold } from '../../../safety/fold.ts'
import { isSecretive } from '../../../safety/redact.ts'
import { budgetsOf, standingOf } from '../../../safety/ruling.ts'
import { isFirstFor, tools } from '../../../tools/registry.ts'
import { addRow, type Play } from './rows.ts'

/** The model that is tried, with its limits for prompt and response. */
export type Candidate = {
  /** Returns a response, or the reason why there is none. Throws if it is useless to continue. */
  ask(request: {
    messages: ChatMessage[]
    tools: ChatTool[]
  }): Promise<ChatAnswer | { failed: string; lacksTools: boolean }>
  prompts: Pick<Prompts, 'protocol'>
  windowTokens: number
  maxTokens: number
}

const offering = { more: 'more_tools', find: 'find_resource', get: 'get_resource', whole: 'read_result' }
/**
 * Values as in an investigation: an estimate without a tokenizer, and a limit against too many
 * calls.
 */
const charactersPerToken = 3
const callsRead = 32
const minRoomCharacters = 4_000
/** Calls in text that cannot be read, after which a run continues with the JSON protocol. */
const maxUnreadCalls = 2

/**
 * Requests one turn from the model and adds it as a row. Null if there is no response, and the
 * trial run has ended.
 */
export async function askTurn(
  play: Play,
  candidate: Candidate,
  turn: number,
): Promise<IncidentEvent<'model_answered'> | null> {
  const unread = play.rows.filter((row) => row.kind === 'correction_sent' && row.metadata.code === 'call_as_text')
  if (unread.length >= maxUnreadCalls) play.protocol = 'json'
  const read = unreadOf(play.rows).map(({ seq }) => seq)
  const request = requestOf(play, candidate, turn)
  const answer = await candidate.ask(request)
  if ('failed' in answer) {
    if (answer.lacksTools && play.protocol === 'native') {
      play.protocol = 'json'
      return await askTurn(play, candidate, turn)
    }
    play.end = { kind: 'unanswered', why: answer.failed }
    return null
  }
  const { reasoning: _, ...said } = { ...answer, content: withoutThoughts(answer.content) }
  const isKnown = (tool: string) => readToolName(tool, (name) => tools.has(name)) !== null
  const limits = { maxCalls: callsRead, isKnown, wasShown: shownIn(untrustedIn(request.messages)) }
  const parsed = parseAnswer(play.protocol, answer, limits)
  play.turns += 1
  play.tokens += said.usage.promptTokens + said.usage.completionTokens
  play.isAssumed ||= said.usage.isAssumed === true
  return addRow(play, { kind: 'model_answered', turn, metadata: answeredRow(said, parsed, turn, read) })
}

function answeredRow(
  answer: ChatAnswer,
  parsed: ParsedAnswer,
  turn: number,
  read: number[],
): EventMetadata['model_answered'] {
  const calls = parsed.kind === 'calls' ? parsed.calls : []
  return {
    content: parsed.kind === 'correction' ? answer.content : parsed.text,
    body: null,
    calls: calls.map((call, index) => ({
      id: callId(turn, index),
      ...readCall(call, tools),
      problem: call.problem,
      ...(isSecretive(call.arguments) && { secret: true }),
    })),
    final: parsed.kind === 'final' ? { text: parsed.text, confidence: parsed.confidence, claims: parsed.claims } : null,
    problem: parsed.kind === 'correction' ? { code: parsed.code, text: parsed.text } : null,
    usage: answer.usage,
    model: answer.model,
    finishReason: answer.finishReason,
    durationMs: answer.durationMs,
    ...(read.length > 0 && { read }),
  }
}

/**
 * Lists texts from which a response may have been copied: all but the prompt, the model's own
 * texts, and corrections that quote them.
 */
function untrustedIn(messages: readonly ChatMessage[]): string[] {
  return messages.flatMap(({ role, content }) =>
    role === 'system' || role === 'assistant' || !content || content.startsWith('CORRECTION: ') ? [] : [content],
  )
}

/**
 * Builds the request from the stored first turn and the trial run so far, as an investigation would
 * send it.
 */
function requestOf(
  play: Play,
  { prompts, windowTokens, maxTokens }: Candidate,
  turn: number,
): { messages: ChatMessage[]; tools: ChatTool[] } {
  const { recording, rows, protocol } = play
  const { opening, attempt, texts } = recording
  const { metadata } = opening
  const textOf = (digest: string) => texts.get(digest) as string
  const { hint, ...gathered } = JSON.parse(textOf(metadata.context.digest)) as { hint: string | null }
  const known = showContext(gathered)
  const runbooks = metadata.runbooks ? runbookMatch.parse(JSON.parse(textOf(metadata.runbooks.digest))) : null
  const added = addedTools(play, gathered)
  const offered = [...(JSON.parse(textOf(metadata.tools.digest)) as ChatTool[]), ...added]
  const asText = protocol === 'json' ? offered.map((tool) => JSON.stringify(tool.function)).join('\n') : ''
  const sent = protocol === 'native' ? offered : []
  const budgets = budgetsOf(rows, attempt, metadata)
  const limits = describeLimits(budgets, { isSingle: protocol === 'json', at: opening.at })
  const first: ChatMessage[] = [
    { role: 'system', content: systemText(play, prompts, textOf(metadata.prompt.digest), asText) },
    { role: 'user', content: `${renderContext(known)}\n${limits}` },
    ...(runbooks ? [{ role: 'user' as const, content: renderRunbooks(runbooks) }] : []),
    ...(hint === null ? [] : [{ role: 'user' as const, content: renderHint(hint) }]),
  ]
  const used = JSON.stringify(sent).length + first.reduce((sum, { content }) => sum + (content?.length ?? 0), 0)
  const answerTokens = Math.min(maxTokens, Math.floor(windowTokens / 2))
  const room = Math.max(minRoomCharacters, (windowTokens - answerTokens) * charactersPerToken - used)
  const standing = standingOf(fold(rows, attempt), turn, budgets)
  const talk: TranscriptEntry[] = [
    { kind: 'context', value: shownFirst(known, runbooks) },
    ...withStanding(foldLooks(conversation(rows, attempt)), standing),
  ]
  return { messages: renderMessages(protocol, first, talk, texts, room), tools: sent }
}

function addedTools({ rows, recording }: Play, context: unknown): ChatTool[] {
  const { attempt, opening, texts } = recording
  const { more } = opening.metadata
  const wanted = addedBy(rows, attempt, offering)
  const kept = more ? (JSON.parse(texts.get(more.digest) as string) as ChatTool[]) : []
  return chooseAdded(kept, wanted, wanted.kinds.length > 0 && isWithoutResource(context), isFirstFor)
}

function systemText({ recording, protocol }: Play, prompts: Candidate['prompts'], prompt: string, asText: string) {
  if (protocol === recording.opening.metadata.protocol) return asText === '' ? prompt : `${prompt}\n${asText}`
  return renderAsJson(prompt, prompts, asText)
}
