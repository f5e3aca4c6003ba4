import { hasOpenBracket } from './awk.ts'

/**
 * Proves that sed only prints: the script has only addresses, and commands that use no files and
 * programs.
 */

export function inspectSed(script: string): string | null {
  const reader: Reader = { text: script, at: 0, appended: 0, isHeld: false, times: 1 }
  while (true) {
    skip(reader, /^[\s;}]+/)
    if (reader.at >= script.length) return null
    if (!skipAddresses(reader)) return 'an address that cannot be read'
    skip(reader, /^[ \t]*(?:![ \t!]*)?/)
    const why = readCommand(reader)
    if (why) return why
    // Refuses the hold space appended to itself, which doubles with each line.
    if (reader.isHeld && reader.appended > 1) return 'the script appends held text to itself more than once'
    if (reader.times > maxTimes) return `the script makes a line more than ${maxTimes} times as long`
  }
}

const maxTimes = 100

/**
 * `appended`: how often one space is appended to the other. `isHeld`: the hold space is appended to
 * the line. `times`: how many times longer replacements make a line.
 */
type Reader = { text: string; at: number; appended: number; isHeld: boolean; times: number }

function skip(reader: Reader, what: RegExp): boolean {
  const found = what.exec(reader.text.slice(reader.at))
  if (found) reader.at += found[0].length
  return found !== null
}

function skipAddresses(reader: Reader): boolean {
  if (!skipAddress(reader)) return true
  skip(reader, /^[ \t]*/)
  if (!skip(reader, /^,[ \t]*/)) return true
  return skip(reader, /^[+~]\d+/) || skipAddress(reader)
}

function skipAddress(reader: Reader): boolean {
  if (skip(reader, /^(?:\d+(?:~\d+)?|\$)/)) return true
  const custom = /^\\([^\n\\])/.exec(reader.text.slice(reader.at))
  if (!custom && reader.text[reader.at] !== '/') return false
  reader.at += custom ? 2 : 1
  if (!skipExpression(reader, custom ? custom[1]! : '/')) return false
  return skip(reader, /^[IM]*/)
}

/**
 * Moves past the next unescaped delimiter. Versions of sed disagree whether a bracket hides the
 * delimiter, so such a script cannot be read.
 */
function skipExpression(reader: Reader, delimiter: string): boolean {
  const from = reader.at
  return skipUntil(reader, delimiter) && !hasOpenBracket(reader.text.slice(from, reader.at - 1))
}

function skipUntil(reader: Reader, delimiter: string): boolean {
  while (reader.at < reader.text.length) {
    const character = reader.text[reader.at]!
    if (character === '\n') return false
    reader.at += character === '\\' ? 2 : 1
    if (character === delimiter) return true
  }
  return false
}

function readCommand(reader: Reader): string | null {
  const command = reader.text[reader.at]
  reader.at += 1
  if (command === 'G' || command === 'H') reader.appended += 1
  if (command === 'G') reader.isHeld = true
  switch (command) {
    case '{':
      return null
    case 'p':
    case 'P':
    case 'd':
    case 'D':
    case 'n':
    case 'N':
    case 'g':
    case 'G':
    case 'h':
    case 'H':
    case 'x':
    case '=':
    case 'z':
      return endOfCommand(reader, /^[ \t]*(?=$|[;\n}#])/)
    case 'l':
    case 'q':
    case 'Q':
      return endOfCommand(reader, /^[ \t]*\d*[ \t]*(?=$|[;\n}#])/)
    case '#':
      skip(reader, /^[^\n]*/)
      return null
    case 's':
      return readSubstitution(reader)
    case 'y':
      return readTwoParts(reader) ? endOfCommand(reader, /^[ \t]*(?=$|[;\n}#])/) : 'a y command that cannot be read'
    case undefined:
      return 'a command is missing'
    default:
      return `the command ${command} does more than print`
  }
}

const endOfCommand = (reader: Reader, end: RegExp): string | null =>
  skip(reader, end) ? null : `${JSON.stringify(reader.text.slice(reader.at, reader.at + 10))} after a command`

function readTwoParts(reader: Reader): boolean {
  const delimiter = reader.text[reader.at]
  if (!delimiter || /[\s\\\w]/.test(delimiter)) return false
  reader.at += 1
  return skipExpression(reader, delimiter) && skipUntil(reader, delimiter)
}

function readSubstitution(reader: Reader): string | null {
  const from = reader.at
  if (!readTwoParts(reader)) return 'an s command that cannot be read'
  const [, , replacement = ''] = reader.text.slice(from, reader.at).split(reader.text[from]!)
  reader.times *= Math.max(1, replacement.match(/&|\\\d/g)?.length ?? 0)
  const flags = /^[A-Za-z0-9]*/.exec(reader.text.slice(reader.at))![0]
  if (/[^gpIiMm0-9]/.test(flags)) return `s with ${flags} writes a file or runs a program`
  reader.at += flags.length
  return endOfCommand(reader, /^[ \t]*(?=$|[;\n}#])/)
}
