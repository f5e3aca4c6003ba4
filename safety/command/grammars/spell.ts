import type { Grammar, Option } from '../grammar.ts'

/** Options by kind, spelled as in the manual: `spell({ flag: '-a --all', number: '-n --lines' })`. */
export function spell(kinds: Partial<Record<Option, string>>): Record<string, Option> {
  const options: Record<string, Option> = {}
  for (const [kind, words] of Object.entries(kinds)) {
    for (const word of words.trim().split(/\s+/)) options[word] = kind as Option
  }
  return options
}

/** Several names of one grammar: `each('a addr address', …)`. */
export function each(names: string, grammar: Grammar): Record<string, Grammar> {
  return Object.fromEntries(
    names
      .trim()
      .split(/\s+/)
      .map((name) => [name, grammar]),
  )
}

/** What GNU programs have in common. */
export const gnu = '--help --version'
