import { type Word as BashWord, parse as parseBash, type SyntaxNode, type WordPart } from 'unbash'
import { outputOf, prints } from './outputs.ts'
import { changed, expandBraces, type Parameter, unknown } from './patterns.ts'
import type { Simple, Word } from './tree.ts'
import { type Constants, countReadings, defineWord, knownFields, remember } from './words.ts'

/**
 * Expands words as a shell would, as far as the text tells the values: `${IFS}`, braces, `$'…'`,
 * defaults, variables that the text sets, output of `echo` and decoders. Records what one command
 * defines for later commands. Used only for the list of forbidden commands.
 */

type Reader = {
  constants: Constants
  /** Which value of a variable is used, counted back from the newest: 0 is the newest. */
  back: number
  depth: number
}

/** Maximum depth of substitutions. */
const deepest = 6

type Field = { text: string; globs: boolean; content: string | null }

/** Returns the fields into which the shell splits the words. */
export function expandWords(words: readonly BashWord[], constants: Constants, back: number): Word[] {
  return fieldsOf(words, { constants, back, depth: 0 }).map(({ text, globs, content }) => ({
    text,
    literal: !globs,
    quoting: 'bare',
    pattern: globs && text.length <= 200 ? text.replace(/\*+/g, '*') : null,
    ...(content === null ? {} : { content }),
  }))
}

/** Expands a word in an assignment or after `<<<`, where it becomes one field. */
export function expandValue(word: BashWord, constants: Constants): string {
  return fieldsOf([word], { constants, back: 0, depth: 0 })
    .map(({ text }) => text)
    .join(' ')
}

function fieldsOf(words: readonly BashWord[], reader: Reader): Field[] {
  const fields: Field[] = []
  for (const word of words) {
    if (fields.length > 256) break
    for (const one of withoutBraces(word)) {
      const made = fieldsOfWord(one, reader)
      for (const field of made) {
        const text = settled(field.text, fields.length === 0)
        if (text !== '' || field.text === '') fields.push({ ...field, text: text ?? word.text })
      }
    }
  }
  return fields
}

/**
 * Removes an unknown value in a name, in an option and between letters. In any other place the
 * value stays unknown.
 */
function settled(text: string, isName: boolean): string | null {
  if (!text.includes(unknown)) return text
  if (isName || text.startsWith('-')) return text.replaceAll(unknown, '')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: U+0000 stands for what is not known, since no word can hold it.
  const closed = text.replace(/(?<=\w)\u0000+(?=\w)/g, '')
  return closed.includes(unknown) ? null : closed
}

function withoutBraces(word: BashWord): BashWord[] {
  if (!word.parts?.some(({ type }) => type === 'BraceExpansion')) return [word]
  return expandBraces(word.text).flatMap((text) => {
    const [statement] = parseBash(`x ${text}`).commands
    const command = statement?.command
    return command?.type === 'Command' ? command.suffix.filter((part) => part.type === 'Word') : []
  })
}

function fieldsOfWord(word: BashWord, reader: Reader): Field[] {
  if (!word.parts) return [{ text: word.value, globs: false, content: null }]
  const fields: Field[] = []
  let open: Field | null = null
  const add = (text: string, globs = false) => {
    open = { text: (open?.text ?? '') + text, globs: globs || (open?.globs ?? false), content: open?.content ?? null }
  }
  const close = () => {
    if (open) fields.push(open)
    open = null
  }
  /**
   * Joins several fields with the text around them: the first with the text before, the last with
   * the text after.
   */
  const addAll = (texts: readonly string[]) => {
    for (const [index, text] of texts.entries()) {
      if (index > 0) close()
      add(text)
    }
  }
  for (const part of word.parts) {
    switch (part.type) {
      case 'Literal':
      case 'SingleQuoted':
      case 'AnsiCQuoted':
        add(part.value)
        break
      case 'Glob':
        add(part.text, true)
        break
      case 'ExtendedGlob':
        add(part.pattern.split('|')[0] ?? '')
        break
      case 'DoubleQuoted':
      case 'LocaleString':
        add('')
        for (const inner of part.parts) {
          if (inner.type === 'Literal') add(inner.value)
          else if (isList(inner)) addAll(valuesOf(inner, reader))
          else add(valuesOf(inner, reader).join(' '))
        }
        break
      case 'ProcessSubstitution':
        open = { text: '/dev/fd/63', globs: false, content: part.script ? printed(part.script, reader) : null }
        break
      default: {
        const value = valuesOf(part, reader).join(' ')
        // Ends the field at blanks outside quotes, and at characters that the text puts into IFS.
        if (/^\s/.test(value)) close()
        addAll(separated(value, reader.constants).filter((text) => text !== ''))
        if (/\S\s+$/.test(value)) close()
      }
    }
  }
  close()
  return fields
}

function separated(value: string, constants: Constants): string[] {
  const own = constants.variables.get('IFS')?.at(-1)?.join('') ?? ''
  return value
    .split(/\s+/)
    .flatMap((text) => [...own].reduce((parts, character) => parts.flatMap((part) => part.split(character)), [text]))
}

/** Whether a part stays several fields inside quotes: `"$@"` and `"${a[@]}"` do. */
const isList = (part: WordPart): boolean => /^\$(?:@|\{@\}|\{\w+\[@\]\})$/.test('text' in part ? part.text : '')

function valuesOf(part: WordPart, reader: Reader): readonly string[] {
  switch (part.type) {
    case 'SimpleExpansion':
      return knownFields(reader.constants, part.text.slice(1), reader.back) ?? [unknown]
    case 'CommandExpansion':
      return [
        part.script && reader.depth < deepest
          ? (printed(part.script, reader)?.replace(/\n+$/, '') ?? unknown)
          : unknown,
      ]
    case 'ParameterExpansion':
      return parameter(part, reader)
    case 'ArithmeticExpansion': {
      const number = /^\$(?:\(\(|\[)\s*(-?\d+)\s*(?:\)\)|\])$/.exec(part.text)
      return [number ? number[1]! : unknown]
    }
    default:
      return [unknown]
  }
}

function parameter(part: Parameter, reader: Reader): readonly string[] {
  const found = knownFields(reader.constants, part.parameter, reader.back)
  const values = part.index && found ? elements(found, part.index.value) : found
  if (part.prefix === '#') return [values ? String(values.join(' ').length) : unknown]
  if (part.prefix === '!') {
    if (part.operation?.type === 'Names') return [unknown]
    return (values && knownFields(reader.constants, values.join(' '), reader.back)) ?? [unknown]
  }
  return part.operation
    ? changed(values, part, part.operation, (word) => (word ? expandInside(word, reader) : ''), reader.constants)
    : (values ?? [unknown])
}

function elements(values: readonly string[], index: string): readonly string[] {
  if (index === '@' || index === '*') return values
  const value = values.at(Number(index))
  return value === undefined ? [] : [value]
}

const expandInside = (word: BashWord, reader: Reader): string =>
  fieldsOfWord(word, { ...reader, depth: reader.depth + 1 })
    .map(({ text }) => text)
    .join(' ')

type Script = Pick<NonNullable<Extract<WordPart, { type: 'CommandExpansion' }>['script']>, 'commands'>

/** Returns the output of a script that only repeats and decodes; null for any other script. */
function printed(script: Script, reader: Reader): string | null {
  let text = ''
  for (const { command } of script.commands) {
    const one = printedByTree(command, { ...reader, depth: reader.depth + 1 })
    if (one === null) return null
    text += one
  }
  return script.commands.length > 0 ? text : null
}

/** Returns the output of a group, if it is known. */
export const printedByNode = (node: SyntaxNode, constants: Constants): string | null =>
  printedByTree(node, { constants, back: 0, depth: 0 })

function printedByTree(node: SyntaxNode, reader: Reader): string | null {
  if (node.type === 'Subshell' || node.type === 'BraceGroup')
    return reader.depth > deepest ? null : printed(node.body, reader)
  const commands = node.type === 'Pipeline' ? node.commands : [node]
  let passed: string | null = null
  for (const command of commands) {
    if (command.type !== 'Command' || !command.name) return null
    const words = [command.name, ...command.suffix.filter((part) => part.type === 'Word')]
    passed = outputOf(
      fieldsOf(words, reader).map(({ text }) => text),
      inputOf(command, reader) ?? passed,
    )
    if (passed === null || passed.includes(unknown)) return null
  }
  return passed
}

function inputOf(command: Extract<SyntaxNode, { type: 'Command' }>, reader: Reader): string | null {
  for (const part of command.suffix) {
    if (part.type === 'HereString' && part.target) return `${expandInside(part.target, reader)}\n`
    if (part.type === 'HereDoc') return part.body.text
  }
  return null
}

type CommandNode = Extract<SyntaxNode, { type: 'Command' }>

/** Records what the command defines, and replaces its words as the shell would. */
export function follow(node: CommandNode, made: Simple, constants: Constants): void {
  if (made.words.length > 0 && !made.words.every(isPlain)) {
    const words = [...(node.name ? [node.name] : []), ...node.suffix.filter((part) => part.type === 'Word')]
    const ways = made.words.some(({ text }) => text.includes('$')) ? countReadings(constants) : 1
    for (let back = 0; back < ways; back += 1) made.guesses.push(expandWords(words, constants, back))
  }
  define(made, constants)
}

export const isPlain = ({ literal, pattern }: Word): boolean => literal || pattern !== null

const defining: ReadonlySet<string> = new Set(['set', 'read', 'printf', 'alias', 'mapfile', 'readarray'])

/** Handles builtins that set variables, positional parameters and aliases. */
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

/** Returns the output of a command in a pipe, if it is known. */
export function printedBy({ words, guesses, input }: Simple): string | null {
  const name = (guesses[0] ?? words)[0]?.text
  if (name === undefined || !prints(name)) return null
  return outputOf(
    (guesses[0] ?? words).map(({ text }) => text),
    input,
  )
}
