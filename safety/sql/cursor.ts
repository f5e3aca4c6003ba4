/** One token of a text for MySQL or SQLite. `text`: without quotes. `word`: in upper case. */
export type Token = {
  kind: 'word' | 'name' | 'string' | 'number' | 'sign' | 'end'
  text: string
  word: string
  /** Whether the token is the first of its line, where a client expects its own commands. */
  opensLine: boolean
}

/** Syntax of a dialect. Every other character or combination is a problem. */
export type Scanner = {
  /** Signs of the dialect, the longest first. */
  signs: readonly string[]
  /** Opening quotes of names, each with its closing quote. */
  nameQuotes: Readonly<Record<string, string>>
  stringQuotes: string
  /** Whether `#` begins a comment up to the end of the line. */
  hashComments: boolean
  /** Whether `--` begins a comment only before a blank. */
  dashNeedsBlank: boolean
  /** Whether `@@name` reads a variable of the server. */
  serverVariables: boolean
  /** Whether `\g` and `\G` end a statement. */
  backslashEnds: boolean
}

/**
 * The part of a text because of which the text is not a read. An SQL problem is not an Error,
 * because it is always caught, and a stack trace would cost more than parsing.
 */
export class SqlProblem {
  readonly message: string
  constructor(message: string) {
    this.message = message
  }
}

/**
 * Splits a text into tokens, or throws a SqlProblem with the unknown part. Refuses literals with a
 * backslash, and comments with a quote, semicolon or hint, because servers, modes and clients
 * disagree where these end.
 */
export function tokenise(text: string, scanner: Scanner): Token[] {
  const tokens: Token[] = []
  let at = 0
  let opensLine = true
  const push = (kind: Token['kind'], value: string, length: number) => {
    tokens.push({ kind, text: value, word: kind === 'word' ? value.toUpperCase() : '', opensLine })
    at += length
    opensLine = false
  }
  while (at < text.length) {
    const rest = text.slice(at, at + 2)
    const char = text[at]!
    if (char === '\n') {
      opensLine = true
      at++
    } else if (char === ' ' || char === '\t') at++
    else if (rest === '--' || (char === '#' && scanner.hashComments)) at = skipLine(text, at, scanner)
    else if (rest === '/*') at = skipBlock(text, at)
    else if (scanner.nameQuotes[char]) {
      const [value, length] = quoted(text, at, scanner.nameQuotes[char])
      push('name', value, length)
    } else if (scanner.stringQuotes.includes(char)) {
      const [value, length] = quoted(text, at, char)
      push('string', value, length)
    } else if (/[0-9]/.test(char) || /^\.[0-9]/.test(rest)) push('number', ...number(text, at))
    else if (/[A-Za-z_]/.test(char)) {
      const word = matchAt(/[A-Za-z0-9_$]+/y, text, at)
      push('word', word, word.length)
    } else if (rest === '@@' && scanner.serverVariables) push('sign', '@@', 2)
    else if (char === '\\' && scanner.backslashEnds && /^\\[gG]$/.test(rest)) push('sign', ';', 2)
    else {
      const sign = scanner.signs.find((candidate) => text.startsWith(candidate, at))
      if (!sign) throw new SqlProblem(`character ${JSON.stringify(char)}`)
      push('sign', sign, sign.length)
    }
  }
  tokens.push({ kind: 'end', text: 'the end', word: '', opensLine: false })
  return tokens
}

/** Matches characters in a comment that some client or mode reads as code. */
const oddInComment = /['"`;\\]|\/\*/

function skipLine(text: string, at: number, scanner: Scanner): number {
  if (text[at] === '-' && scanner.dashNeedsBlank && !/^--(?:[ \t\n]|$)/.test(text.slice(at, at + 3))) {
    throw new SqlProblem('-- without a blank')
  }
  const newline = text.indexOf('\n', at)
  const end = newline < 0 ? text.length : newline
  if (oddInComment.test(text.slice(at, end))) throw new SqlProblem('a comment with a quote, `;`, `\\` or `/*`')
  return end
}

function skipBlock(text: string, at: number): number {
  const end = text.indexOf('*/', at + 2)
  if (end < 0) throw new SqlProblem('a comment without an end')
  const body = text.slice(at + 2, end)
  if (/^(?:M?!|\+)/.test(body)) throw new SqlProblem(`comment /*${body.slice(0, 2)}`)
  if (oddInComment.test(body)) throw new SqlProblem('a comment with a quote, `;`, `\\` or `/*`')
  return end + 2
}

function quoted(text: string, at: number, close: string): [value: string, length: number] {
  let end = at + 1
  for (;;) {
    end = text.indexOf(close, end)
    if (end < 0) throw new SqlProblem(`${text[at]} without an end`)
    // Reads a doubled quote as one character. Brackets cannot be doubled.
    if (close === ']' || text[end + 1] !== close) break
    end += 2
  }
  const raw = text.slice(at + 1, end)
  if (raw.includes('\\')) throw new SqlProblem('a backslash')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the ASCII range
  if (close !== "'" && close !== '"' && /[^\x00-\x7f]/.test(raw)) throw new SqlProblem('a name that is not ASCII')
  return [close === ']' ? raw : raw.replaceAll(close + close, close), end + 1 - at]
}

function number(text: string, at: number): [value: string, length: number] {
  const value = matchAt(/0[xX][0-9a-fA-F]+|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?/y, text, at)
  if (/[A-Za-z0-9_$.]/.test(text.charAt(at + value.length))) throw new SqlProblem(`number ${value.slice(0, 40)}`)
  return [value, value.length]
}

function matchAt(pattern: RegExp, text: string, at: number): string {
  pattern.lastIndex = at
  return pattern.exec(text)![0]
}

/**
 * A dialect's words inside a SELECT; the grammar is shared. Words are in upper case, names in lower
 * case.
 */
type SelectWords = {
  /** Words that are names only in quotes. */
  reserved: ReadonlySet<string>
  functions: ReadonlySet<string>
  tableFunctions: ReadonlySet<string>
  /**
   * Throws a SqlProblem if a table may not be read. The parts are in lower case, without quotes.
   */
  checkTable: (parts: string[]) => void
  types: ReadonlySet<string>
  /** Words that stand between two operands, such as `div`. */
  operators: ReadonlySet<string>
  constants: ReadonlySet<string>
  intervalUnits: ReadonlySet<string>
  /** Whether `IN name` reads a table. */
  inTable: boolean
}

const deepest = 60

/**
 * A position in a list of tokens. A method that requires something throws a SqlProblem with the
 * token that it found.
 */
export class Cursor {
  private at = 0
  private depth = 0
  private readonly tokens: readonly Token[]
  readonly words: SelectWords
  /** Names of WITH tables of this statement that have one row or only a few rows. */
  readonly small = new Set<string>()
  /**
   * Reads a query inside an expression. The function is passed in, because queries and expressions
   * contain each other.
   */
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
  /** Returns the tokens from a place up to here. */
  since(from: number): readonly Token[] {
    return this.tokens.slice(from, this.at)
  }
  place(): number {
    return this.at
  }
  takeWord(...words: string[]): boolean {
    if (!this.isWord(...words)) return false
    this.at++
    return true
  }
  /** Takes all words in this order, or none. */
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
  /** Reads `a, b)`: the names of columns up to the closing parenthesis. */
  namesAndClose(): void {
    do this.name()
    while (this.takeSign(','))
    this.needSign(')')
  }
  fail(): never {
    throw new SqlProblem(`token ${this.peek().text.slice(0, 40)}`)
  }
  /** Does the work one level deeper. Refuses deeper nesting than any investigation needs. */
  nested(work: () => void): void {
    if (++this.depth > deepest) throw new SqlProblem('nested too deep')
    work()
    this.depth--
  }
}

/** Reads statements between semicolons by the dialect's rule. Returns the first word of each. */
export function readStatements(c: Cursor, statement: (c: Cursor) => void): string[] {
  const kinds: string[] = []
  while (!c.atEnd()) {
    if (c.takeSign(';')) continue
    c.small.clear()
    kinds.push(c.peek().word || c.peek().text)
    statement(c)
    if (!c.atEnd()) c.needSign(';')
  }
  return kinds
}
