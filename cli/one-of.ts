import { InvalidArgumentError } from 'commander'

/** Parses a flag that takes one of a few words. */
export function parseOneOf(words: readonly string[]) {
  return (text: string) => {
    if (!words.includes(text)) throw new InvalidArgumentError(`It is one of ${words.join(', ')}.`)
    return text
  }
}

/** Parses a flag that counts something. */
export function parseWholeNumber(text: string): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError('It takes a whole number from 1.')
  return value
}
