import type { TokenUsage } from '../../domain/chat.ts'

/**
 * A model server's token counts: its own words, which end or free a budget. They are held to what
 * was sent and received.
 */

/** Bytes of one exchange. */
export type Exchanged = {
  /** The whole request: no tokenizer makes more than one token of a byte. */
  request: number
  /** Messages and tools, which become the prompt. */
  prompt: number
  /** Text, calls and reasoning that came. */
  received: number
  /** The received bytes without reasoning. */
  said: number
  /** Tokens that the request allowed for the answer: hidden reasoning counts too. */
  maxTokens: number
}

/** Fewer tokens than that no tokenizer makes of a text of this length. */
const maxBytesPerToken = 8

type Stated = { prompt: unknown; completion: unknown; reasoning: unknown }

/**
 * The server's count where it is possible, else the nearest possible: `isAssumed` then, and where
 * it gives none.
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

/** The sum of two; one that is assumed makes it so. */
export function addUsage(a: TokenUsage, b: TokenUsage): TokenUsage {
  const reasoning = (a.reasoningTokens ?? 0) + (b.reasoningTokens ?? 0)
  return {
    promptTokens: a.promptTokens + b.promptTokens,
    completionTokens: a.completionTokens + b.completionTokens,
    ...((a.reasoningTokens ?? b.reasoningTokens) !== undefined && { reasoningTokens: reasoning }),
    ...((a.isAssumed || b.isAssumed) && { isAssumed: true }),
  }
}
