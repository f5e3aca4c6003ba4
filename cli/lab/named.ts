import { parseOneOf } from '../one-of.ts'

/** Parses the name of a fault or scenario; dashes are as good as underscores. */
export function parseLabName(words: readonly string[]) {
  const parse = parseOneOf(words)
  return (text: string) => parse(text.replaceAll('-', '_'))
}
