import { hiddenCharacter } from './hidden-characters.ts'

const hidden = new RegExp(hiddenCharacter(''), 'gu')

/**
 * A stranger's text for a receiver's screen: nothing in it moves a terminal, turns the reading direction or hides; at most
 * `maxChars` code points.
 */
export function inertText(text: string, maxChars: number): string {
  const plain = text
    .slice(0, maxChars * 4)
    .toWellFormed()
    .replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
    .replace(hidden, '\uFFFD')
    .trim()
  const chars = [...plain]
  const isCut = chars.length > maxChars || text.length > maxChars * 4
  return isCut ? `${chars.slice(0, maxChars - 1).join('')}…` : plain
}
