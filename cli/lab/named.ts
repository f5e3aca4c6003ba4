import { oneOf } from '../one-of.ts'

/** Parses the name of a fault or scenario; dashes are as good as underscores. */
export function named(words: readonly string[]) {
  const parse = oneOf(words)
  return (text: string) => parse(text.replaceAll('-', '_'))
}
