import type { TokenUsage } from './chat.ts'

/** Prices in dollars per million tokens. */
type Price = { in: number; out: number }

/**
 * A rule for the price of models. `model` may end in `*`. The first rule that fits the model gives
 * the price.
 */
export type PriceRule = { model: string; price: Price }

/**
 * List prices from each maker's page, read on 2026-11-24: standard rate, no cache, no batch. An
 * installation with another contract sets `agent.prices`, which is used first.
 */
export const shippedPrices: readonly (PriceRule & { source: string })[] = [
  row('claude-fable-5*', 10, 50, 'https://platform.claude.com/docs/about-claude/models/whats-new-opus-5'),
  row('claude-opus-5-5*', 4, 20, 'https://platform.claude.com/docs/about-claude/models/whats-new-opus-5'),
  row('claude-opus-5*', 5, 25, 'https://platform.claude.com/docs/about-claude/models/whats-new-opus-5'),
  row('claude-sonnet-5*', 2, 10, 'https://platform.claude.com/docs/about-claude/models/whats-new-opus-5'),
  row('claude-haiku-4-5*', 1, 5, 'https://platform.claude.com/docs/zh-CN/models/sonnet-5/overview'),
  row('gpt-4.1-mini*', 0.4, 1.6, 'https://tokenmath.io/openai-api-pricing-explained'),
  row('gpt-4.1', 2, 8, 'https://tokenmath.io/openai-api-pricing-explained'),
  row('gpt-5-mini*', 0.25, 2, 'https://deploybase.ai/articles/openai-pricing'),
  row('gpt-5-nano*', 0.05, 0.4, 'https://deploybase.ai/articles/openai-pricing'),
  row('gpt-5-pro*', 15, 120, 'https://deploybase.ai/articles/openai-pricing'),
  row('gpt-5.4*', 2.5, 15, 'https://deploybase.ai/articles/openai-pricing'),
  row('gpt-5.1*', 1.25, 10, 'https://deploybase.ai/articles/openai-pricing'),
  row('gpt-5', 1.25, 10, 'https://deploybase.ai/articles/openai-pricing'),
]

function row(model: string, dollarsIn: number, dollarsOut: number, source: string) {
  return { model, price: { in: dollarsIn, out: dollarsOut }, source }
}

const maxRules = 100
const maxDollars = 100_000
const rule =
  /^(?<model>[\w.:/@-]{1,200}\*?|\*)\s*=\s*(?<in>\d{1,6}(?:\.\d{1,6})?)\s*\/\s*(?<out>\d{1,6}(?:\.\d{1,6})?)$/

/**
 * Parses rules for prices: `qwen* = 0.2/0.6; llama-3.3-70b = 0`. A rule has dollars per million
 * tokens in and out, and semicolons separate the rules.
 */
export function parsePrices(text: string): { ok: true; rules: PriceRule[] } | { ok: false; reason: string } {
  const parts = text
    .split(/[;\n]/)
    .map((part) => part.trim())
    .filter(Boolean)
  if (parts.length > maxRules)
    return { ok: false, reason: `must have at most ${maxRules} rules, and has ${parts.length}` }
  const rules: PriceRule[] = []
  for (const part of parts) {
    // Accepts `model = 0` for a model that costs nothing.
    const { groups } = rule.exec(part.replace(/=\s*0$/, '= 0/0')) ?? {}
    if (!groups)
      return {
        ok: false,
        reason: `"${part.slice(0, 80)}" is not a rule of the form "model = dollars in / dollars out"`,
      }
    const price = { in: Number(groups.in), out: Number(groups.out) }
    if (Math.max(price.in, price.out) > maxDollars)
      return { ok: false, reason: `"${part.slice(0, 80)}" costs more than ${maxDollars} dollars a million` }
    rules.push({ model: groups.model ?? '', price })
  }
  return { ok: true, rules }
}

/**
 * Finds the price of a model by the first of its names that has a rule. If no rule fits, tries the
 * name without the prefix of a provider (`openai/gpt-5`). If there is still no rule, uses the
 * highest known price (`isAssumed`), so that a budget is reached too early rather than too late.
 */
export function priceOf(models: readonly string[], ownRules: readonly PriceRule[]): Price & { isAssumed: boolean } {
  const rules = [...ownRules, ...shippedPrices]
  for (const name of models.flatMap((model) => [model, model.slice(model.lastIndexOf('/') + 1)])) {
    const found = rules.find((each) => fits(each.model, name))
    if (found) return { ...found.price, isAssumed: false }
  }
  return {
    in: Math.max(...rules.map(({ price }) => price.in)),
    out: Math.max(...rules.map(({ price }) => price.out)),
    isAssumed: true,
  }
}

function fits(pattern: string, model: string): boolean {
  return pattern.endsWith('*') ? model.startsWith(pattern.slice(0, -1)) : pattern === model
}

/** The cost of a response, at its price then. `isAssumed`: no rule names the model. */
export type AnswerCost = { dollars: number; in: number; out: number; isAssumed?: boolean }

/** Returns the dollars that a response of the model cost. */
export function costOf({ promptTokens, completionTokens }: TokenUsage, price: Price): number {
  return Number(((promptTokens * price.in + completionTokens * price.out) / 1_000_000).toFixed(9))
}

/** Formats dollars with two decimals, or with more if the amount would show as zero. */
export function formatDollars(dollars: number): string {
  if (dollars === 0) return '$0'
  return `$${dollars >= 0.01 ? dollars.toFixed(2) : dollars.toPrecision(1)}`
}
