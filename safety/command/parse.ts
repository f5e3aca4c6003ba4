import { type Word as BashWord, forEachChild, type ParsedScript, parse as parseBash, type SyntaxNode } from 'unbash'
import { expandValue, expandWords, follow, isPlain, printedBy, printedByNode } from './expand.ts'
import { readLoopWords, readSample } from './sampled-words.ts'
import {
  callsItself,
  innerNodes,
  mark,
  plainNodes,
  type Redirection,
  type Simple,
  shapeOf,
  type Tree,
  type Word,
} from './tree.ts'
import { type Constants, defineWord, noConstants, readWord, remember } from './words.ts'

export type { Redirection, Simple, Tree, Word } from './tree.ts'

/**
 * Wraps the shell parser. Outside of this file everything is plain data: pipelines of simple
 * commands, and a list of the other parts of a text. A node type of the parser that is not known
 * here is `unknown`, which needs approval.
 */

/**
 * Parses bash. A part that cannot be read becomes an error, next to the rest. Null if the parser
 * gave up and nothing is known.
 */
export function parse(source: string, constants: Constants = noConstants()): Tree | null {
  const tree: Tree = {
    pipelines: [],
    nested: [],
    shapes: [],
    error: null,
    constants,
    inherited: null,
    isFed: false,
    rounds: null,
    own: new Map(),
    chance: 0,
    unrolled: 0,
    depth: 0,
  }
  try {
    visit(parseBash(source), source, tree, false)
    return tree
  } catch {
    return null
  }
}

function visit(node: SyntaxNode, source: string, tree: Tree, nested: boolean): void {
  switch (node.type) {
    case 'Script': {
      const errors = (node as ParsedScript).errors
      if (errors && errors.length > 0) tree.error ??= errors[0]!.message
      // Uses the decoded text of a script in backticks, to which its positions refer.
      const text = node.source ?? source
      for (const statement of node.commands) visit(statement, text, tree, nested)
      return
    }
    case 'Statement':
      if (node.background) mark(tree, 'background', '&')
      visit(node.command, source, tree, nested)
      return
    case 'AndOr':
      for (const [index, part] of node.commands.entries()) {
        // Counts commands after && or ||, because the shell may skip them.
        if (index === 1) tree.chance += 1
        visit(part, source, tree, nested)
      }
      tree.chance -= node.commands.length > 1 ? 1 : 0
      return
    case 'Pipeline': {
      const simples: Simple[] = []
      let printed: string | null = null
      let isAside = false
      for (const [at, command] of node.commands.entries()) {
        if (command.type !== 'Command') {
          const { inherited, isFed } = tree
          tree.inherited = printed ?? inherited
          tree.isFed = isFed || command !== node.commands[0]
          visit(command, source, tree, nested)
          Object.assign(tree, { inherited, isFed })
          printed = printedByNode(command, tree.constants)
          isAside = true
          continue
        }
        const made = simple(command, source, tree, nested || node.commands.length > 1)
        made.input ??= printed
        if (isAside || node.operators[at - 1] === '|&') made.isAside = true
        isAside = false
        printed = simples.length < maxPassed ? printedBy(made) : null
        simples.push(made)
      }
      if (simples.length > 0) (nested ? tree.nested : tree.pipelines).push(simples)
      return
    }
    case 'Command':
      ;(nested ? tree.nested : tree.pipelines).push([simple(node, source, tree, nested)])
      return
    case 'Subshell':
    case 'BraceGroup':
    case 'If':
    case 'CompoundList':
    case 'Elif':
      // Visits the commands inside, because at least a part of them runs.
      if (nested) visitOther(node, source, tree)
      else inside(tree, () => forEachChild(node, (child) => visit(child, source, tree, false)))
      return
    case 'For':
      if (nested || !visitRounds(node, source, tree)) visitOther(node, source, tree)
      return
    default:
      visitOther(node, source, tree)
  }
}

function inside(tree: Tree, read: () => void): void {
  tree.depth += 1
  read()
  tree.depth -= 1
}

/** Most rounds, commands and characters for which a loop is written out. */
const maxRounds = 16
const maxUnrolled = 200
const maxUnrolledCharacters = 16_384
/** Most commands in a pipe through which a text is followed. */
const maxPassed = 16

/** Writes `for h in a b; do …; done` out as rounds; false if its words are unknown. */
function visitRounds(node: Extract<SyntaxNode, { type: 'For' }>, source: string, tree: Tree): boolean {
  const name = node.name.value
  // Allows only a lower-case name, because programs may obey an upper-case one.
  if (!node.wordlist || !/^[a-z]\w*$/.test(name) || tree.rounds?.has(name) || tree.own.has(name)) return false
  const read = readLoopWords(node.wordlist)
  if (!read || read.values.length > maxRounds || tree.unrolled > maxUnrolled) return false
  if ((node.body.end - node.body.pos) * read.values.length > maxUnrolledCharacters) return false
  for (const script of read.scripts) visit(script, source, tree, false)
  tree.rounds ??= new Map()
  const { rounds } = tree
  for (const value of read.values) {
    rounds.set(name, value)
    remember(tree.constants, name, [value.text])
    inside(tree, () => visit(node.body, source, tree, false))
    tree.unrolled += 1
  }
  rounds.delete(name)
  if (rounds.size === 0) tree.rounds = null
  return true
}

/** Records a compound command, and visits the commands inside. */
function visitOther(node: SyntaxNode, source: string, tree: Tree): void {
  const shape = shapeOf[node.type]
  if (shape) mark(tree, shape, source.slice(node.pos, node.end))
  else if (!plainNodes.has(node.type) && !innerNodes.has(node.type)) mark(tree, 'unknown', node.type)
  if ((node.type === 'CommandExpansion' || node.type === 'ProcessSubstitution') && !node.script) {
    tree.error ??= 'a substitution that cannot be read'
  }
  if (node.type === 'Function')
    defineWord(tree.constants, 'functions', node.name.value, source.slice(node.body.pos, node.body.end))
  if (node.type === 'For' && node.wordlist) {
    for (const { text } of expandWords(node.wordlist, tree.constants, 0).slice(0, 8))
      remember(tree.constants, node.name.value, [text])
  }
  if (node.type === 'Function' && callsItself(node, node.name.value)) mark(tree, 'fork bomb', node.name.value)
  const outer = tree.inherited
  if (node.type === 'Redirected') {
    tree.inherited = redirectedInput(node, tree) ?? outer
    // Keeps the redirections of a group. They are checked against the list of forbidden
    // redirections, like the redirections of one command.
    const redirections = node.redirects.flatMap((part) =>
      part.type === 'Redirect'
        ? [
            {
              operator: part.operator,
              ...redirected(part.target, source, tree),
              source: source.slice(part.pos, part.end),
            },
          ]
        : [],
    )
    tree.nested.push([{ ...emptySimple(tree), redirections }])
  }
  forEachChild(node, (child) => visit(child, source, tree, true))
  tree.inherited = outer
}

/** Returns the text that a loop or group reads by `<<<` or `<<`. */
function redirectedInput({ redirects }: Extract<SyntaxNode, { type: 'Redirected' }>, tree: Tree): string | null {
  for (const part of redirects) {
    if (part.type === 'HereString' && part.target) return expandValue(part.target, tree.constants)
    if (part.type === 'HereDoc') return part.body.text
  }
  return null
}

type CommandNode = Extract<SyntaxNode, { type: 'Command' }>

const emptySimple = (tree: Tree): Simple => ({
  words: [],
  assignments: [],
  redirections: [],
  input: null,
  isFed: tree.isFed,
  guesses: [],
  others: [],
  isInside: tree.depth > 0,
  start: -1,
  end: -1,
})

function simple(node: CommandNode, source: string, tree: Tree, isApart: boolean): Simple {
  // Gives a command in a loop no place in the text, because the command stands for several. Without
  // a place, the command gets no other form.
  const isOnce = tree.rounds === null
  const made = emptySimple(tree)
  made.start = isOnce ? node.pos : -1
  made.end = node.end
  if (node.name) made.words.push(word(node.name, source, tree))
  if (!isOnce) tree.unrolled += 1
  for (const part of node.prefix.length > 0 ? [...node.prefix, ...node.suffix] : node.suffix) {
    switch (part.type) {
      case 'Word':
        addArgument(part, made, source, tree)
        break
      case 'Assignment':
        if (node.suffix.includes(part)) made.words.push(argumentAssignment(part, source, tree))
        else
          made.assignments.push(
            (!isApart && !node.name && ownVariable(part, source, tree)) || assignment(part, source, tree),
          )
        break
      case 'Redirect':
        made.redirections.push({
          operator: part.operator,
          ...redirected(part.target, source, tree),
          source: source.slice(part.pos, part.end),
        })
        if (part.descriptor?.type === 'FileDescriptorVariable') mark(tree, 'expansion', part.descriptor.name)
        break
      case 'HereString':
        made.input = part.target ? hereString(part.target, source, tree) : ''
        mark(tree, 'here-string', '<<<')
        break
      case 'HereDoc':
        made.input = part.body.text
        visitOther(part, source, tree)
        break
      default:
        mark(tree, 'unknown', (part as SyntaxNode).type)
    }
  }
  made.input ??= tree.inherited
  follow(node, made, tree.constants)
  return made
}

function redirected(target: BashWord | undefined, source: string, tree: Tree): Pick<Redirection, 'target' | 'guess'> {
  if (!target) return { target: nothing, guess: null }
  const written = word(target, source, tree)
  return { target: written, guess: isPlain(written) ? null : (expandWords([target], tree.constants, 0)[0] ?? null) }
}

function hereString(target: BashWord, source: string, tree: Tree): string {
  const written = word(target, source, tree)
  return written.literal ? written.text : expandValue(target, tree.constants)
}

const nothing: Word = { text: '', literal: false, quoting: 'bare', pattern: null }

type AssignmentNode = Extract<SyntaxNode, { type: 'Assignment' }>

function assignment(node: AssignmentNode, source: string, tree: Tree) {
  const plain = node.value.type === 'Word' && !node.append && !node.index
  if (node.index) visit(node.index, source, tree, true)
  if (node.value.type === 'Word') {
    const value = word(node.value, source, tree)
    const text = value.literal ? value.text : expandValue(node.value, tree.constants)
    const before = node.append ? (tree.constants.variables.get(node.name)?.at(-1)?.join(' ') ?? '') : ''
    remember(tree.constants, node.name, [before + text])
    return { name: node.name, value, plain }
  }
  visitOther(node.value, source, tree)
  const elements = expandWords(node.value.elements, tree.constants, 0).map(({ text }) => text)
  remember(tree.constants, node.name, elements)
  return { name: node.name, value: nothing, plain: false }
}

/** Matches names of variables that no program and no shell obeys. */
const ownNames =
  /^(?!histchars$|auto_resume$|[a-z]*_proxy$)(?:[a-z][a-z0-9_]*|(?:[A-Z]+_)?(?:POD|PID|ID|NODE|NAME|NAMESPACE|NS|CONTAINER|CID|JOB|VOLUME|POOL|SVC|UNIT|DATE|TODAY|COUNT|TOPIC|OSD|PG))$/

/**
 * Reads `pod=$(crictl pods -q …)`: a variable that the text sets once, to a word of known form.
 * Words with the variable are judged with a sample, with nothing (it may stay empty), and with
 * several words. Null for any other assignment.
 */
function ownVariable(node: AssignmentNode, source: string, tree: Tree): Simple['assignments'][number] | null {
  const { name, value } = node
  if (value.type !== 'Word' || node.append || node.index || !ownNames.test(name)) return null
  const sample = readSample(value, tree)
  const text = sample?.word.text ?? (value.parts?.some(({ type }) => type !== 'Literal') ? null : value.value)
  if (text === null || !/^[\w./:@%+,-]*$/.test(text) || (sample && !sample.word.literal)) return null
  const isKnown = !tree.own.has(name) && !tree.rounds?.has(name) && tree.rounds === null
  const isExact = sample === null && tree.depth === 0 && tree.chance === 0
  tree.own.set(name, isKnown ? { text, isExact } : null)
  remember(tree.constants, name, [text])
  for (const script of sample?.scripts ?? []) visit(script, source, tree, false)
  return { name, value: { text, literal: true, quoting: 'bare', pattern: null }, plain: true, isOwn: true }
}

/** Reads an assignment that is an argument, as in `export A=b` and `env A=b`. */
function argumentAssignment(node: Extract<SyntaxNode, { type: 'Assignment' }>, source: string, tree: Tree): Word {
  const { name, value, plain } = assignment(node, source, tree)
  if (!plain) return { ...nothing, text: node.text }
  return { text: `${name}=${value.text}`, literal: value.literal, quoting: value.quoting, pattern: null }
}

function word(node: BashWord, source: string, tree: Tree): Word {
  return readWord(node, tree, (part) => visitOther(part, source, tree))
}

/** Adds an argument, and every other form that the shell may give to it. */
function addArgument(node: BashWord, made: Simple, source: string, tree: Tree): void {
  const sample = readSample(node, tree)
  const added = sample?.word ?? word(node, source, tree)
  for (const other of made.others) other.push(added)
  for (const other of sample?.others ?? []) made.others.push([...made.words, ...other])
  made.words.push(added)
  for (const script of sample?.scripts ?? []) visit(script, source, tree, false)
}
