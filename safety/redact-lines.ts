import { stripText } from './redact.ts'
import { mark } from './redact-names.ts'

/**
 * Removes private keys that extend over several lines of a log, where no single line shows the key.
 * The lines may begin or end within a key, so consecutive base64 lines of one length count as part
 * of a key, even the lines of a certificate.
 */

const begins = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/
const ends = /-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/
/** Matches a part of a key after the prefix of a program's log line. */
const part = /(?:^|(?<=[\s|>"':\]]))[A-Za-z0-9+/]{16,}={0,2}(?=[\s"',\\]|$)/g
const lastPart = /^\s*[A-Za-z0-9+/]{1,80}={0,2}\s*$/
const wholePart = /^[A-Za-z0-9+/]{60,80}$/
/** Most lines after the first line of a private key that count as its parts. */
const maxKeyLines = 200

const isMixed = (text: string): boolean => /[a-z]/.test(text) && /[A-Z]/.test(text) && /\d/.test(text)

/** Finds the lines of a key before its last line; without a first line, only base64 lines. */
function findWithin(lines: readonly string[]): Set<number> {
  const within = new Set<number>()
  let opened: number | null = null
  for (const [at, line] of lines.entries()) {
    if (opened !== null && at - opened <= maxKeyLines && !ends.test(line)) within.add(at)
    if (ends.test(line)) {
      if (opened === null) for (let back = at - 1; back >= 0 && lastPart.test(lines[back]!); back -= 1) within.add(back)
      opened = null
    }
    // Opens a key only if it does not end on the same line.
    if (begins.test(line) && !ends.test(line)) opened = at
  }
  return within
}

/** Finds sequences of lines whose last words are base64 of one length. */
function findRuns(lines: readonly string[]): Set<number> {
  const words = lines.map((line) => /\S+$/.exec(line.trimEnd())?.[0] ?? '')
  const isPart = (at: number) => wholePart.test(words[at] ?? '') && isMixed(words[at]!)
  const isBeside = (at: number, other: number) => isPart(other) && words[other]!.length === words[at]!.length
  return new Set([...words.keys()].filter((at) => isPart(at) && (isBeside(at, at - 1) || isBeside(at, at + 1))))
}

/**
 * Returns the lines in order, without parts of private keys. Secrets within single lines are left
 * to `cleanse`.
 */
export function redactKeyLines(lines: readonly string[]): string[] {
  const plain = lines.map((line) => stripText(line))
  const [within, runs] = [findWithin(plain), findRuns(plain)]
  return lines.map((line, at) => {
    if (!within.has(at) && !runs.has(at)) return line
    const hidden = plain[at]!.replace(part, mark('private_key'))
    return within.has(at) && lastPart.test(hidden) ? mark('private_key') : hidden
  })
}
