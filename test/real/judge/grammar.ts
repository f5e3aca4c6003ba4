import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Chance } from './canaries.ts'

/**
 * A grammar of texts, as `grammars/` has them: a name with a colon, then its alternatives, one a
 * line. `<name>` in one stands for an alternative of another name, `<empty>` for nothing, `<blank>`
 * for a blank at an end, `<newline>` for an end of line. It begins with `text`; an alternative that
 * is written twice comes twice as often. Lines that begin with # explain.
 */
export type TextGrammar = ReadonlyMap<string, readonly string[]>

export function readGrammar(name: string): TextGrammar {
  const grammar = new Map([
    ['empty', ['']],
    ['blank', [' ']],
    ['newline', ['\n']],
  ])
  let alternatives: string[] = []
  for (const line of readFileSync(join(import.meta.dirname, 'grammars', `${name}.txt`), 'utf8').split('\n')) {
    if (line === '' || line.startsWith('#')) continue
    if (line.startsWith('  ')) alternatives.push(line.slice(2))
    else {
      alternatives = []
      grammar.set(line.slice(0, line.indexOf(':')), alternatives)
    }
  }
  return grammar
}

/** Deeper than this the first alternative is taken, which has to end. */
const deepest = 12

export function generate(grammar: TextGrammar, chance: Chance, name: string, depth = 0): string {
  const alternatives = grammar.get(name)
  if (!alternatives) throw new Error(`the grammar has no ${name}`)
  const chosen = alternatives[depth > deepest ? 0 : chance(alternatives.length)]!
  return fill(grammar, chance, chosen, depth + 1)
}

/** An alternative with each name in it replaced. */
export function fill(grammar: TextGrammar, chance: Chance, text: string, depth = 0): string {
  return text.replace(/<([a-z]+)>/g, (_, name: string) => generate(grammar, chance, name, depth))
}

/** This many texts, each once. */
export function* textsOf(grammar: TextGrammar, chance: Chance, count: number): Generator<string> {
  const seen = new Set<string>()
  for (let tries = 0; seen.size < count && tries < count * 20; tries++) {
    const text = generate(grammar, chance, 'text')
    if (seen.has(text)) continue
    seen.add(text)
    yield text
  }
}
