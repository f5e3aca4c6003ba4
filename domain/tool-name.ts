/**
 * Finds the tool that a model means with a spelling; null if no tool or several tools match. Drops
 * blanks, quotes, control tokens (`get_node<|channel|>commentary`), a prefix (`functions.get_node`)
 * and the number of the call (`get_node:0`), and reads dots and dashes as underscores (`fs.read`).
 * Never guesses from a part of a name.
 */
export function readToolName(spelled: string, has: (name: string) => boolean): string | null {
  if (has(spelled)) return spelled
  const [word = ''] = spelled.trim().split(/\s|<[|｜]|[|｜]>/u)
  const bare = word
    .replace(/^["'`]+|["'`]+$/g, '')
    .replace(/(?:\(\))?(?::\d{1,4})?$/, '')
    .replace(/^(?:functions?|tools?|default_api|api)[./:]/i, '')
  const names = [bare, bare.replace(/[.-]/g, '_'), bare.toLowerCase().replace(/[.-]/g, '_')]
  const meant = new Set(names.filter(has))
  return meant.size === 1 ? [...meant][0]! : null
}

/** Lists tools that may be meant: one name contains the other, or most words are equal. */
export function similarNames(spelled: string, names: readonly string[], max = 5): string[] {
  const wanted = wordsOf(spelled)
  const scored = names.map((name) => {
    const words = wordsOf(name)
    const shared = words.filter((word) => wanted.includes(word)).length
    const isPart = spelled.length > 3 && (name.includes(spelled) || spelled.includes(name))
    return { name, score: (isPart ? 2 : 0) + (2 * shared) / Math.max(1, words.length + wanted.length) }
  })
  return scored
    .filter(({ score }) => score >= 0.5)
    .toSorted((a, b) => b.score - a.score)
    .slice(0, max)
    .map(({ name }) => name)
}

const wordsOf = (name: string): string[] =>
  name
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter(Boolean)
