import { formatList } from './format.ts'

/**
 * Changes that a write made, in words. Empty if the state was already as wanted. Null if the target
 * system does not report changes; a read then has to show whether the state improved.
 */
export type Changed = string[] | null

const maxWords = 100
const maxCharacters = 300

/**
 * Reads the changes from the response to a write, limited in number and length. Returns null for
 * anything but a list of texts.
 */
export function readChanged(answer: unknown): Changed {
  const told = answer !== null && typeof answer === 'object' ? (answer as { changed?: unknown }).changed : null
  if (!Array.isArray(told) || !told.every((each) => typeof each === 'string')) return null
  return told
    .filter((each) => each.trim() !== '')
    .slice(0, maxWords)
    .map((each) => each.slice(0, maxCharacters).toWellFormed())
}

const shown = 3

/** Adds the changes to a sentence about a write, unless the sentence already names them. */
export function sayChanged(said: string, changed: Changed): string {
  if (changed === null) return said
  if (changed.length === 0)
    return /nothing (?:had )?to (?:be )?changed?/.test(said) ? said : `${said}; nothing had to be changed`
  const more = changed.filter((each) => !said.includes(each))
  if (more.length === 0) return said
  const left = more.length > shown ? [`${more.length - shown} more`] : []
  return `${said}; changed: ${formatList([...more.slice(0, shown), ...left])}`
}
