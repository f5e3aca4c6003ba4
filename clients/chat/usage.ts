import type { TokenUsage } from '../../domain/chat.ts'

/**
 * Checks a model server's token counts, which use up a budget, against the bytes that were sent and
 * received.
 */

/** Sizes of one exchange in bytes. */
export type Exchanged = {
  /** The bytes of the complete request. No tokenizer makes more than one token from a byte. */
  request: number
  /** The bytes of messages and tools, which become the prompt. */
  prompt: number
  /** The bytes of text, calls and reasoning that were received. */
  received: number
  /** The received bytes without reasoning. */
  said: number
  /** The tokens that the request allowed for the response, with hidden reasoning. */
  maxTokens: number
}

/** The most bytes per token, on average, of any tokenizer. */
const maxBytesPerToken = 8

type Stated = { prompt: unknown; completion: unknown; reasoning: unknown }

/**
 * Returns the server's count if the count is possible, or else the nearest possible count.
 * `isAssumed`: the count was corrected, or the server reported no count.
 */
export function boundUsage(stated: Stated, bytes: Exchanged): TokenUsage {
  const isAllowed = Number(stated.completion) <= bytes.maxTokens
  const prompt = bound(stated.prompt, bytes.prompt, bytes.request)
  const completion = bound(stated.completion, bytes.said, isAllowed ? bytes.maxTokens : bytes.received)
  const reasoning = stated.reasoning === undefined ? null : bound(stated.reasoning, 0, completion.tokens)
  return {
    promptTokens: prompt.tokens,
    completionTokens: completion.tokens,
    ...(reasoning && { reasoningTokens: reasoning.tokens }),
    ...((prompt.isAssumed || completion.isAssumed) && { isAssumed: true }),
  }
}

function bound(stated: unknown, leastBytes: number, most: number): { tokens: number; isAssumed: boolean } {
  const least = Math.ceil(leastBytes / maxBytesPerToken)
  if (typeof stated !== 'number' || !Number.isInteger(stated)) return { tokens: least, isAssumed: true }
  const tokens = Math.min(Math.max(stated, least), Math.max(most, least))
  return { tokens, isAssumed: tokens !== stated }
}

/** Adds two token counts. The sum is assumed if either count is assumed. */
export function addUsage(a: TokenUsage, b: TokenUsage): TokenUsage {
  const reasoning = (a.reasoningTokens ?? 0) + (b.reasoningTokens ?? 0)
  return {
    promptTokens: a.promptTokens + b.promptTokens,
    completionTokens: a.completionTokens + b.completionTokens,
    ...((a.reasoningTokens ?? b.reasoningTokens) !== undefined && { reasoningTokens: reasoning }),
    ...((a.isAssumed || b.isAssumed) && { isAssumed: true }),
  }
}
