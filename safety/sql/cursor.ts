import { Problem, type Token } from './tokens.ts'

/** What a dialect allows inside a SELECT; the grammar itself is common. Words are upper case, names lower case. */
type SelectWords = {
  /** Words that are no name unless quoted. */
  reserved: ReadonlySet<string>
  functions: ReadonlySet<string>
  tableFunctions: ReadonlySet<string>
  /** Throws a Problem where a table may not be read. Parts are lower case, without quotes. */
  checkTable: (parts: string[]) => void
  types: ReadonlySet<string>
  /** Words between two operands. */
  operators: ReadonlySet<string>
  constants: ReadonlySet<string>
  intervalUnits: ReadonlySet<string>
  /** `IN name` reads a table. */
  inTable: boolean
}

const deepest = 60

/** A place in a list of tokens. Every method that needs something throws a Problem naming the token in its place. */
export class Cursor {
  private at = 0
  private depth = 0
  private readonly tokens: readonly Token[]
  readonly words: SelectWords
  /** Reads a query inside an expression: handed in, since queries hold expressions and expressions hold queries. */
  readonly readQuery: (c: Cursor) => void

  constructor(tokens: readonly Token[], words: SelectWords, readQuery: (c: Cursor) => void) {
    this.tokens = tokens
    this.words = words
    this.readQuery = readQuery
  }

  peek(ahead = 0): Token {
    return this.tokens[Math.min(this.at + ahead, this.tokens.length - 1)]!
  }
  take(): Token {
    const token = this.peek()
    if (token.kind !== 'end') this.at++
    return token
  }
  atEnd(): boolean {
    return this.peek().kind === 'end'
  }
  isWord(...words: string[]): boolean {
    return this.peek().kind === 'word' && words.includes(this.peek().word)
  }
  isSign(sign: string, ahead = 0): boolean {
    return this.peek(ahead).kind === 'sign' && this.peek(ahead).text === sign
  }
  takeWord(...words: string[]): boolean {
    if (!this.isWord(...words)) return false
    this.at++
    return true
  }
  /** All words in this order, or none. */
  takeWords(...words: string[]): boolean {
    if (!words.every((word, index) => this.peek(index).kind === 'word' && this.peek(index).word === word)) return false
    this.at += words.length
    return true
  }
  takeSign(sign: string): boolean {
    if (!this.isSign(sign)) return false
    this.at++
    return true
  }
  takeKind(...kinds: Token['kind'][]): boolean {
    if (!kinds.includes(this.peek().kind)) return false
    this.at++
    return true
  }
  needSign(sign: string): void {
    if (!this.takeSign(sign)) this.fail()
  }
  needWord(...words: string[]): void {
    if (!this.takeWord(...words)) this.fail()
  }
  needKind(...kinds: Token['kind'][]): void {
    if (!this.takeKind(...kinds)) this.fail()
  }
  isName(ahead = 0): boolean {
    const token = this.peek(ahead)
    return token.kind === 'name' || (token.kind === 'word' && !this.words.reserved.has(token.word))
  }
  name(): string {
    if (!this.isName()) this.fail()
    return this.take().text
  }
  /** `a, b)`: the names of columns behind their parenthesis. */
  namesAndClose(): void {
    do this.name()
    while (this.takeSign(','))
    this.needSign(')')
  }
  fail(): never {
    throw new Problem(`token ${this.peek().text.slice(0, 40)}`)
  }
  /** Runs one level deeper; what nests deeper than any diagnosis is not read at all. */
  nested(work: () => void): void {
    if (++this.depth > deepest) throw new Problem('nested too deep')
    work()
    this.depth--
  }
}

/** Reads statements with semicolons between them, each by the dialect's own rule. Answers the words they begin with. */
export function readStatements(c: Cursor, statement: (c: Cursor) => void): string[] {
  const kinds: string[] = []
  while (!c.atEnd()) {
    if (c.takeSign(';')) continue
    kinds.push(c.peek().word || c.peek().text)
    statement(c)
    if (!c.atEnd()) c.needSign(';')
  }
  return kinds
}
