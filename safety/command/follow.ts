import type { SyntaxNode } from 'unbash'
import { expandWords } from './expand.ts'
import { outputOf, prints } from './outputs.ts'
import type { Simple, Word } from './tree.ts'
import { type Constants, defineWord, remember, waysToRead } from './words.ts'

/** What one command makes known to those after it: variables, parameters, aliases, and what it prints. */

type CommandNode = Extract<SyntaxNode, { type: 'Command' }>

/** Follows what the command makes known, and writes its words out where the shell would. */
export function follow(node: CommandNode, made: Simple, constants: Constants): void {
  if (made.words.length > 0 && !made.words.every(isPlain)) {
    const words = [...(node.name ? [node.name] : []), ...node.suffix.filter((part) => part.type === 'Word')]
    const ways = made.words.some(({ text }) => text.includes('$')) ? waysToRead(constants) : 1
    for (let back = 0; back < ways; back += 1) made.guesses.push(expandWords(words, constants, back))
  }
  define(made, constants)
}

export const isPlain = ({ literal, pattern }: Word): boolean => literal || pattern !== null

const defining: ReadonlySet<string> = new Set(['set', 'read', 'printf', 'alias', 'mapfile', 'readarray'])

/** Builtins that set variables, positional parameters and aliases. */
function define({ words, input, guesses }: Simple, constants: Constants): void {
  const name = words[0]?.text
  if (name === undefined || !defining.has(name)) return
  const texts = (guesses[0] ?? words).map(({ text }) => text)
  if (name === 'set') {
    const end = texts.indexOf('--')
    if (end > 0) constants.positional = texts.slice(end + 1)
  } else if (name === 'read' && input !== null) {
    const names = texts.slice(1).filter((text) => /^[A-Za-z_]\w*$/.test(text))
    for (const line of input.trim().split('\n').slice(0, 8)) {
      const fields = line.trim().split(/\s+/)
      for (const [index, name] of names.entries())
        remember(constants, name, [index === names.length - 1 ? fields.slice(index).join(' ') : (fields[index] ?? '')])
    }
  } else if ((name === 'mapfile' || name === 'readarray') && input !== null) {
    const last = texts.at(-1)!
    remember(constants, texts.length > 1 && /^[A-Za-z_]\w*$/.test(last) ? last : 'MAPFILE', input.trim().split('\n'))
  } else if (name === 'printf' && texts[1] === '-v' && texts[2]) {
    remember(constants, texts[2], [outputOf(['printf', ...texts.slice(3)], null) ?? ''])
  } else if (name === 'alias') {
    for (const text of texts.slice(1)) {
      const equals = text.indexOf('=')
      if (equals > 0) defineWord(constants, 'aliases', text.slice(0, equals), text.slice(equals + 1))
    }
  }
}

/** What a command of a pipe hands on, where that is known. */
export function printedBy({ words, guesses, input }: Simple): string | null {
  const name = (guesses[0] ?? words)[0]?.text
  if (name === undefined || !prints(name)) return null
  return outputOf(
    (guesses[0] ?? words).map(({ text }) => text),
    input,
  )
}
