import { activityInfo } from '@temporalio/activity'
import { CancelledFailure } from '@temporalio/common'
import { ModelError } from '../clients/chat/answer.ts'
import { answerTokens } from '../clients/chat/body.ts'
import type { ModelClient } from '../clients/model.ts'
import type { Db } from '../db/connect.ts'
import { append } from '../db/log/append.ts'
import { bodiesByDigest, bodyText } from '../db/log/bodies.ts'
import { type ChatAnswer, type ChatMessage, type ChatTool, plainShape, type Writing } from '../domain/chat.ts'
import { agentActor, type EventMetadata, type IncidentEvent } from '../domain/event.ts'
import { runbookMatch } from '../domain/runbook.ts'
import { stepKey, type TurnRef } from '../domain/step-key.ts'
import { readToolName } from '../domain/tool-name.ts'
import { addedBy, chooseAdded, isWithoutResource } from '../model/added-tools.ts'
import { foldLooks } from '../model/fold-looks.ts'
import { describeLimits } from '../model/limits.ts'
import { bodiesThatFit, renderMessages } from '../model/messages.ts'
import { answerForm, type ParsedAnswer, parseAnswer } from '../model/protocol.ts'
import { showContext, shownFirst } from '../model/shown-result.ts'
import { withoutThoughts } from '../model/thoughts.ts'
import { conversation, type TranscriptEntry, withStanding } from '../model/transcript.ts'
import { shownIn } from '../model/written-calls.ts'
import { type Prompts, renderAsJson, renderContext, renderHint, renderRunbooks } from '../prompts/render.ts'
import { fold } from '../safety/fold.ts'
import { budgetsOf, standingOf } from '../safety/ruling.ts'
import { findResource, getResource } from '../tools/platform.ts'
import { isFirstFor, moreTools, tools } from '../tools/registry.ts'
import { readResult } from '../tools/sources.ts'
import { NonRetryable, RetryLater } from './failures.ts'
import { withLiveAnswer } from './live-answer.ts'
import type { ServedModels } from './served-models.ts'

export type AskDeps = {
  db: Db
  model: ModelClient
  temperature: number
  maxTokens: number
  /** The context window from the settings, in tokens; null takes the window of the server. */
  contextTokens: number | null
  /** Facts of the model server; if absent, the window is that of the settings. */
  served?: ServedModels
  /** The declared name of the model. */
  route?: string
  /** Whether another model can replace the asked model. */
  hasFallback?: boolean
  /** Prompts for a run that changes to the JSON protocol; if absent, no run changes. */
  prompts?: Pick<Prompts, 'protocol'>
}

/** `protocol`: the protocol by which the model was asked. */
export type ParsedReply = { answer: ChatAnswer; parsed: ParsedAnswer; protocol: Opening['protocol'] }
type Opening = EventMetadata['context_assembled']
type Protocol = Opening['protocol']

/** Number of unreadable calls in text after which the run uses the JSON protocol. */
const maxUnreadCalls = 2

/** Returns the protocol of the next request: the run's, or JSON after two unreadable calls. */
function protocolOfTurn(events: readonly IncidentEvent[], attempt: number, { protocol }: Opening): Protocol {
  const unread = events.filter(
    (event) => event.kind === 'correction_sent' && event.attempt === attempt && event.metadata.code === 'call_as_text',
  )
  return unread.length >= maxUnreadCalls ? 'json' : protocol
}
type Window = {
  tokens: number
  source: string
  /** Whether the server silently cuts off a prompt that is longer than the window. */
  isCutting: boolean
  /**
   * Most tokens of an answer, from the settings. `reserve`: the tokens that are kept free for an
   * answer that needs more.
   */
  answer: number
  reserve: number
  /** Whether the server allows only one call per answer. */
  isOneCall: boolean
}

/** Most calls of an answer that are read; an answer with more calls is unusable. */
const callsRead = 32
/**
 * Characters per token, a cautious estimate without a tokenizer, because dense JSON has about 3.
 */
const charactersPerToken = 3
/**
 * Upper limit of characters per token for our texts: a text that is too long at this ratio is too
 * long at any ratio.
 */
const maxCharactersPerToken = 4.5
/** Tokens of the window if neither a setting nor the server states them. */
const defaultWindow = 32_768
/**
 * Most tokens of a window that are used without a setting, because each turn pays for the prompt.
 */
const largestUnset = 131_072
/**
 * Shares of the conversation's room, for the first request and for the retries after a wrong
 * estimate of the prompt's length.
 */
const fits = [1, 0.6, 0.3]

/**
 * Requests one answer and parses it. A failure is recorded as a row and thrown as an error that
 * states whether a retry may help.
 */
export async function askModel(
  deps: AskDeps,
  turn: TurnRef,
  events: readonly IncidentEvent[],
  opening: Opening,
  signal: AbortSignal,
): Promise<ParsedReply> {
  try {
    const about = { turn, maxTurns: opening.maxTurns, model: opening.model }
    const protocol = deps.prompts ? protocolOfTurn(events, turn.attempt, opening) : opening.protocol
    const { answer, messages } = await withLiveAnswer(deps.db, about, (onWriting) =>
      askWithinWindow({ deps, turn, events, opening, protocol }, signal, onWriting),
    )
    const { reasoning: _, ...said } = { ...answer, content: withoutThoughts(answer.content) }
    const isKnown = (tool: string) => readToolName(tool, (name) => tools.has(name)) !== null
    const whole = answer.toolCalls.length > 0 ? [] : await wholeResults(deps.db, events, turn.attempt)
    const limits = { maxCalls: callsRead, isKnown, wasShown: shownIn(untrustedIn([...messages, ...whole])) }
    return { answer: said, parsed: parseAnswer(protocol, answer, limits), protocol }
  } catch (error) {
    if (!(error instanceof ModelError)) throw error
    if (error.code === 'aborted') throw new CancelledFailure('CANCELLED')
    if (error.code === 'oversized') return tooLargeAnswer(opening, error.usage)
    await recordFailure(deps, turn, error)
    // Retries at once, because the next attempt chooses another model.
    if (error.code === 'unpaid' && deps.hasFallback) throw new RetryLater('MODEL_UNPAID', 1)
    if (!error.retryable) throw new NonRetryable(`MODEL_${error.code.toUpperCase()}`)
    throw new RetryLater(`MODEL_${error.code.toUpperCase()}`, error.retryAfterMs)
  }
}

type Asking = {
  deps: AskDeps
  turn: TurnRef
  events: readonly IncidentEvent[]
  opening: Opening
  protocol: Protocol
}

/**
 * Sends the request, and again with less of the conversation if the prompt is too long. Stores the
 * window that the server's refusal names.
 */
async function askWithinWindow(
  { deps, turn, events, opening, protocol }: Asking,
  signal: AbortSignal,
  onWriting: (writing: Writing) => void,
): Promise<{ answer: ChatAnswer; messages: ChatMessage[] }> {
  const added = await addedTools(deps.db, events, turn.attempt, opening)
  const offered = JSON.parse(await bodyText(deps.db, opening.tools.digest)) as ChatTool[]
  const isNative = protocol === 'native'
  const known = [...offered, ...added]
  const tools = isNative ? known : []
  // Lists the tools as text for the JSON protocol. The text is used only if the prompt lacks the
  // tools.
  const addedText = isNative ? '' : known.map((tool) => JSON.stringify(tool.function)).join('\n')
  const toolsLength = tools.length > 0 ? JSON.stringify(tools).length : 0
  for (const [index, part] of fits.entries()) {
    const window = await windowOf(deps, opening.model)
    const messages = await messagesFor({ deps, turn, events, opening, protocol, toolsLength, addedText }, window, part)
    try {
      const key = stepKey(turn, turn.turn, 'model_answered', 0, activityInfo().attempt)
      const answer = await deps.model.complete({
        messages,
        ...(tools.length > 0 ? { tools } : {}),
        temperature: deps.temperature,
        maxTokens: window.answer,
        maxWithReasoning: maxAnswerTokens(window, messages, toolsLength),
        model: opening.model,
        ...(isNative ? {} : { form: answerForm }),
        isOneCall: window.isOneCall,
        signal,
        onWriting,
        // Includes the attempt in the key: a server that replays answers by key must not repeat an
        // answer that was unusable.
        idempotencyKey: index === 0 ? key : `${key}:fit${index}`,
      })
      return { answer, messages }
    } catch (error) {
      const isTooLong = error instanceof ModelError && error.code === 'context_too_long'
      if (!isTooLong || index === fits.length - 1) throw error
      const min = minWindow(events, turn.attempt, messages, toolsLength)
      if (error.windowTokens !== null && error.windowTokens >= min)
        await deps.served?.noteRefusedWindow(opening.model, error.windowTokens)
    }
  }
  throw new NonRetryable('MODEL_CONTEXT_TOO_LONG')
}

/**
 * Returns the tokens that the window has at least: those of the longest answered prompt of this
 * attempt, or of the text before the conversation.
 */
function minWindow(
  events: readonly IncidentEvent[],
  attempt: number,
  messages: readonly ChatMessage[],
  toolsLength: number,
): number {
  const accepted = events.flatMap((event) =>
    event.kind === 'model_answered' && event.attempt === attempt && !event.metadata.usage.isAssumed
      ? [event.metadata.usage.promptTokens]
      : [],
  )
  const opening = toolsLength + (messages[0]?.content?.length ?? 0)
  return Math.max(Math.ceil(opening / maxCharactersPerToken), ...accepted)
}

/**
 * Lists the texts from which a model may copy a call: all except the prompt, the model's own words,
 * and corrections that quote them.
 */
function untrustedIn(messages: readonly ChatMessage[]): string[] {
  return messages.flatMap(({ role, content }) => {
    const isOwn = role === 'system' || role === 'assistant' || content?.startsWith('CORRECTION: ')
    return isOwn || !content ? [] : [content]
  })
}

/**
 * Renders the attempt's results whole. A request folds, shortens or leaves out old results, but the
 * model read them and may copy a call from them.
 */
async function wholeResults(db: Db, events: readonly IncidentEvent[], attempt: number): Promise<ChatMessage[]> {
  const entries = conversation(events, attempt)
  const digests = entries.flatMap((entry) => (entry.kind === 'result' && entry.body ? [entry.body.digest] : []))
  return renderMessages('native', [], entries, await bodiesByDigest(db, digests), Number.POSITIVE_INFINITY)
}

/** Lists the tools that the model's calls added in this attempt, in the stored order. */
async function addedTools(
  db: Db,
  events: readonly IncidentEvent[],
  attempt: number,
  { more, context }: Opening,
): Promise<ChatTool[]> {
  if (!more) return []
  const wanted = addedBy(events, attempt, offering)
  if (wanted.names.size === 0 && wanted.kinds.length === 0) return []
  const kept = JSON.parse(await bodyText(db, more.digest)) as ChatTool[]
  const isAboutNothing = wanted.kinds.length > 0 && isWithoutResource(JSON.parse(await bodyText(db, context.digest)))
  return chooseAdded(kept, wanted, isAboutNothing, isFirstFor)
}

/** Names of the tools that add others. */
const offering = {
  more: moreTools.name,
  find: findResource.name,
  get: getResource.name,
  whole: readResult.name,
}

/** Returns the window in force, and the share of it for an answer. */
async function windowOf(deps: AskDeps, model: string): Promise<Window> {
  const known = await deps.served?.profile(model)
  const stated = deps.contextTokens ?? Math.min(known?.windowTokens ?? defaultWindow, largestUnset)
  // Limits the setting to the window that the server is known to have, because the setting may be
  // wrong. The server would refuse a longer prompt again or silently cut it.
  const isCutting = known?.cutsSilently === true && !known.isProvisional
  const isBound = isCutting || known?.windowSource === 'a refusal'
  const tokens = isBound ? Math.min(stated, known?.windowTokens ?? stated) : stated
  const half = Math.floor(tokens / 2)
  const answer = Math.min(deps.maxTokens, half)
  return {
    tokens,
    answer,
    isCutting,
    isOneCall: known?.abilities.parallel === 'no',
    reserve: answerTokens(known?.shape ?? plainShape, answer, half),
    source: tokens === deps.contextTokens ? 'LLM_CONTEXT_TOKENS' : (known?.windowSource ?? 'the default'),
  }
}

/**
 * Returns the token limit for an answer with reasoning: up to half the window, if the prompt leaves
 * so much room.
 */
function maxAnswerTokens(window: Window, messages: ChatMessage[], toolsLength: number): number {
  const prompt = Math.ceil((JSON.stringify(messages).length + toolsLength) / charactersPerToken)
  return Math.max(window.reserve, Math.min(Math.floor(window.tokens / 2), window.tokens - prompt))
}

type PromptInput = Asking & {
  toolsLength: number
  /** Definitions of tools that the prompt lacks, if the protocol has tools as text. */
  addedText: string
}

/**
 * Builds the request to the model: the stored prompt, the context, and as much of the conversation
 * as fits into the window.
 */
async function messagesFor(said: PromptInput, window: Window, part: number): Promise<ChatMessage[]> {
  const { turn, events, opening } = said
  const { db } = said.deps
  const context = JSON.parse(await bodyText(db, opening.context.digest)) as { hint: string | null }
  const { hint, ...gathered } = context
  const known = showContext(gathered)
  const first: ChatMessage[] = [
    { role: 'system', content: systemText(said, await bodyText(db, opening.prompt.digest)) },
    { role: 'user', content: `${renderContext(known)}\n${sayLimits(events, turn.attempt, said, window.isOneCall)}` },
  ]
  const runbooks = opening.runbooks && runbookMatch.parse(JSON.parse(await bodyText(db, opening.runbooks.digest)))
  if (runbooks) first.push({ role: 'user', content: renderRunbooks(runbooks) })
  if (hint !== null) first.push({ role: 'user', content: renderHint(hint) })
  const used = said.toolsLength + first.reduce((sum, message) => sum + (message.content?.length ?? 0), 0)
  if (window.isCutting) assertOpeningFits(used, window)
  const room = (window.tokens - window.reserve) * charactersPerToken - used
  // Keeps a minimum for a server that refuses too long a prompt, because its refusal is noticed. A
  // server that silently cuts prompts must not get one character too many.
  const budget = Math.max(window.isCutting ? 0 : 4_000, room * part)

  const standing = standingOf(fold(events, turn.attempt), turn.turn, budgetsOf(events, turn.attempt, opening))
  const talk = withStanding(foldLooks(conversation(events, turn.attempt)), standing)
  const entries: TranscriptEntry[] = [{ kind: 'context', value: shownFirst(known, runbooks ?? null) }, ...talk]
  const bodies = new Map<string, string>()
  for (const digest of bodiesThatFit(entries, budget)) bodies.set(digest, await bodyText(db, digest))
  return renderMessages(said.protocol, first, entries, bodies, budget)
}

/** Returns the system prompt, with tools as text if the protocol needs them. */
function systemText({ deps, opening, protocol, addedText }: PromptInput, prompt: string): string {
  if (protocol === opening.protocol) return addedText === '' ? prompt : `${prompt}\n${addedText}`
  return deps.prompts ? renderAsJson(prompt, deps.prompts, addedText) : prompt
}

/** Describes limits and time as of the gathered context, in the same words at every turn. */
function sayLimits(
  events: readonly IncidentEvent[],
  attempt: number,
  { opening, protocol }: Pick<Asking, 'opening' | 'protocol'>,
  isOneCall: boolean,
): string {
  const at = events.find((event) => event.kind === 'context_assembled' && event.attempt === attempt)?.at ?? null
  return describeLimits(budgetsOf(events, attempt, opening), { isSingle: isOneCall || protocol === 'json', at })
}

/**
 * Throws if the server would cut off the prompt: the model would then answer a part of the prompt.
 */
function assertOpeningFits(characters: number, window: Window): void {
  const min = Math.ceil(characters / maxCharactersPerToken)
  if (min <= window.tokens - window.answer) return
  const message =
    `the prompt and the tools take ${min} tokens or more, and the model is served with a window of ${window.tokens} (${window.source}): ` +
    'the server would cut them off. Set OLLAMA_CONTEXT_LENGTH at Ollama, or PARAMETER num_ctx in its model'
  throw new ModelError('context_too_long', message, { retryable: false })
}

/** Returns a correction for an answer that is too large to be read. */
function tooLargeAnswer(
  { model, protocol }: Pick<Opening, 'model' | 'protocol'>,
  usage: ChatAnswer['usage'] | null,
): ParsedReply {
  const answer: ChatAnswer = {
    content: '',
    toolCalls: [],
    finishReason: 'oversized',
    usage: usage ?? { promptTokens: 0, completionTokens: 0 },
    model,
    durationMs: 0,
  }
  return {
    answer,
    protocol,
    parsed: { kind: 'correction', code: 'too_long', text: 'Your answer was too large to be read. Answer shorter.' },
  }
}

async function recordFailure({ db, served, route }: AskDeps, turn: TurnRef, error: ModelError): Promise<void> {
  const { attempt } = activityInfo()
  await db.transaction().execute(async (trx) => {
    await append(trx, turn.incidentId, turn.attempt, {
      kind: 'model_failed',
      actor: agentActor,
      turn: turn.turn,
      stepKey: stepKey(turn, turn.turn, 'model_failed', 0, attempt),
      detail: error.message,
      metadata: {
        code: error.code,
        status: error.status,
        activityAttempt: attempt,
        retryAfterMs: error.retryAfterMs,
        ...(served && { server: served.server }),
        ...(route !== undefined && { route }),
      },
    })
  })
}
