import { formatList } from './format.ts'

/**
 * Changes of a write, in words. Empty: all was as wanted already. Null: the receiver cannot tell,
 * or is too old to be asked; then a look has to show that something became better.
 */
export type Changed = string[] | null

const maxWords = 100
const maxCharacters = 300

/** What an answer says of it, bounded. What is no list of words tells nothing. */
export function readChanged(answer: unknown): Changed {
  const told = answer !== null && typeof answer === 'object' ? (answer as { changed?: unknown }).changed : null
  if (!Array.isArray(told) || !told.every((each) => typeof each === 'string')) return null
  return told
    .filter((each) => each.trim() !== '')
    .slice(0, maxWords)
    .map((each) => each.slice(0, maxCharacters).toWellFormed())
}

const shown = 3

/** A sentence about a write with what it changed, where the sentence does not say so itself. */
export function sayChanged(said: string, changed: Changed): string {
  if (changed === null) return said
  if (changed.length === 0)
    return /nothing (?:had )?to (?:be )?changed?/.test(said) ? said : `${said}; nothing had to be changed`
  const more = changed.filter((each) => !said.includes(each))
  if (more.length === 0) return said
  const left = more.length > shown ? [`${more.length - shown} more`] : []
  return `${said}; changed: ${formatList([...more.slice(0, shown), ...left])}`
}
