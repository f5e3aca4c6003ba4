import { forEachChild, type SyntaxNode } from 'unbash'
import type { Constants } from './words.ts'

/** The parsed text as plain data. */

/**
 * Parts of a text that are not simple commands joined by `|`, `&&`, `||`, `;` or newlines. Each
 * such text needs approval.
 */
type ShellShape =
  | 'substitution'
  | 'process substitution'
  | 'expansion'
  | 'arithmetic'
  | 'glob'
  | 'brace'
  | 'ANSI-C quoting'
  | 'locale quoting'
  | 'tilde'
  | 'group'
  | 'control flow'
  | 'function'
  | 'fork bomb'
  | 'background'
  | 'coproc'
  | 'here-document'
  | 'here-string'
  | 'test'
  | 'array'
  | 'unknown'

export type Word = {
  /** The word without its quotes; unknown parts stay as written. */
  text: string
  /** Whether the text is exactly what the program receives. */
  literal: boolean
  /**
   * `bare`: no quotes; `whole`: one pair of quotes around the word; `split`: quotes or backslashes
   * inside it.
   */
  quoting: 'bare' | 'whole' | 'split'
  /** The word as a glob pattern, if globbing is its only expansion; otherwise null. */
  pattern: string | null
  /** The contents of the file with this name, if the text itself gives them: `<(echo ls)`. */
  content?: string
  /** Whether the word stands for any path that `find` may reach. */
  found?: true
}

/**
 * The value of a loop's variable. `isPattern`: the value stands for each path that the shell finds
 * by the pattern.
 */
type LoopValue = { text: string; isPattern: boolean }

export type Redirection = {
  operator: string
  target: Word
  /** The expanded target, if it differs from the written one. */
  guess?: Word | null
  source: string
}

export type Simple = {
  /**
   * Whether the command comes after a group or `|&`, so that its input is not the output of the
   * command before.
   */
  isAside?: true
  words: Word[]
  /** `isOwn`: the variable belongs to the text alone, and no program obeys it. */
  assignments: { name: string; value: Word; plain: boolean; isOwn?: true }[]
  redirections: Redirection[]
  /** Literal text on standard input, if it is known: of a here-document or here-string. */
  input: string | null
  /** Whether the command reads the output of a command before its group. */
  isFed: boolean
  /**
   * Commands that the shell may make by expansion, if the text tells enough. Used only for the list
   * of forbidden commands.
   */
  guesses: Word[][]
  /** The command as it runs if a substitution prints nothing, or several words. */
  others: Word[][]
  /**
   * Whether the command is in a group, a condition or a loop, so that it may run never, once or
   * often.
   */
  isInside: boolean
  /** Place in the source. Meaningless for nested commands. */
  start: number
  end: number
}

export type Tree = {
  /** Commands that the text runs, in order, grouped by pipe. */
  pipelines: Simple[][]
  /**
   * Commands inside substitutions, groups, loops and functions. Used only for the list of forbidden
   * commands.
   */
  nested: Simple[][]
  shapes: { shape: ShellShape; text: string }[]
  /** The first error that the parser reported; null if the text could be parsed. */
  error: string | null
  /** Definitions that the text has made so far. */
  constants: Constants
  /** The input of commands inside a loop or group, if it is known. */
  inherited: string | null
  /** Whether this place is inside a loop or group whose input is the output of a command. */
  isFed: boolean
  /**
   * Variables of loops that are written out, with the value of this round; null outside of such
   * loops.
   */
  rounds: Map<string, LoopValue> | null
  /**
   * Variables that the text sets once, each with a sample. Null for a variable that is set to
   * several values.
   */
  own: Map<string, { text: string; isExact: boolean } | null>
  /** Number of && and || before this place in the list. */
  chance: number
  /** Number of commands inside loops, which are in the tree once per round. */
  unrolled: number
  /** Number of open groups, conditions and loops. */
  depth: number
}

/** Node types of the shell parser that mean nothing themselves, and names for all other types. */

export const plainNodes = new Set([
  'Script',
  'CompoundList',
  'Word',
  'Assignment',
  'Redirect',
  'Literal',
  'SingleQuoted',
  'DoubleQuoted',
])
export const innerNodes = new Set([
  'FileDescriptor',
  'FileDescriptorVariable',
  'HereDocDelimiter',
  'HereDocBody',
  'CaseItem',
  'Elif',
  'Time',
  'Negation',
  'ArithmeticBinary',
  'ArithmeticUnary',
  'ArithmeticTernary',
  'ArithmeticGroup',
  'ArithmeticWord',
  'TestUnary',
  'TestBinary',
  'TestLogical',
  'TestNot',
  'TestGroup',
  'Default',
  'Remove',
  'Replace',
  'Slice',
  'CaseModification',
  'Transform',
  'Names',
])

export const shapeOf: Readonly<Record<string, ShellShape>> = {
  CommandExpansion: 'substitution',
  ArithmeticCommandExpansion: 'substitution',
  ProcessSubstitution: 'process substitution',
  SimpleExpansion: 'expansion',
  ParameterExpansion: 'expansion',
  ArithmeticExpansion: 'arithmetic',
  ArithmeticCommand: 'arithmetic',
  Glob: 'glob',
  ExtendedGlob: 'glob',
  BraceExpansion: 'brace',
  AnsiCQuoted: 'ANSI-C quoting',
  LocaleString: 'locale quoting',
  Subshell: 'group',
  BraceGroup: 'group',
  Redirected: 'group',
  If: 'control flow',
  For: 'control flow',
  ArithmeticFor: 'control flow',
  While: 'control flow',
  Select: 'control flow',
  Case: 'control flow',
  Function: 'function',
  Coproc: 'coproc',
  HereDoc: 'here-document',
  HereString: 'here-string',
  TestCommand: 'test',
  ArrayValue: 'array',
}

export function mark(tree: Tree, shape: ShellShape, text: string): void {
  tree.shapes.push({ shape, text: text.length > 80 ? `${text.slice(0, 77)}...` : text })
}

/** Whether a function starts itself in a pipe or in the background, and so multiplies. */
export function callsItself(node: SyntaxNode, name: string, multiplied = false): boolean {
  if (node.type === 'Command') return multiplied && node.name?.value === name
  const more = multiplied || node.type === 'Pipeline' || (node.type === 'Statement' && node.background === true)
  let found = false
  forEachChild(node, (child) => {
    found ||= callsItself(child, name, more)
  })
  return found
}
