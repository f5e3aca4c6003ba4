import type { Chance } from './canaries.ts'

/**
 * A grammar of texts: each name has its alternatives, in which `<name>` stands for one of another name's. What begins with `text` is where it
 * begins. An alternative that is written twice comes twice as often.
 */
export type TextGrammar = Readonly<Record<string, readonly string[]>>

/** Deeper than this the first alternative is taken, which has to end. */
const deepest = 12

export function generate(grammar: TextGrammar, chance: Chance, name = 'text', depth = 0): string {
  const alternatives = grammar[name]
  if (!alternatives) throw new Error(`the grammar has no ${name}`)
  const chosen = alternatives[depth > deepest ? 0 : chance(alternatives.length)]!
  return chosen.replace(/<([a-z]+)>/g, (_, inner: string) => generate(grammar, chance, inner, depth + 1))
}

/** So many texts, each once. */
export function* textsOf(grammar: TextGrammar, chance: Chance, count: number): Generator<string> {
  const seen = new Set<string>()
  for (let tries = 0; seen.size < count && tries < count * 20; tries++) {
    const text = generate(grammar, chance)
    if (seen.has(text)) continue
    seen.add(text)
    yield text
  }
}
