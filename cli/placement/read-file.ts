import { readFileSync } from 'node:fs'
import { parseDocument } from 'yaml'
import { z } from 'zod'
import { type PlacementProblem, type Plan, plan } from '../../domain/placement.ts'
import { type Flaw, InvalidProblemError } from '../../placement/check.ts'
import { problemOfFile } from '../../placement/file.ts'
import { CommandFailed } from '../exit-code.ts'

/** The problem in a file of YAML or JSON (docs/placement.md), `-` for stdin. Ends the command with every field that is wrong. */
export function readProblem(file: string): PlacementProblem {
  const value = parsed(file)
  try {
    return problemOfFile(value)
  } catch (error) {
    if (error instanceof InvalidProblemError) throw wrong(file, 'is no placement problem', error.flaws)
    throw error
  }
}

/** A plan as `placement plan` writes it with --out or --json. */
export function readPlan(file: string): Plan {
  const found = plan.safeParse(parsed(file))
  if (found.success) return found.data
  const flaws = found.error.issues.map(({ path, message }) => ({ path: path.join('.') || 'the plan', message }))
  throw wrong(file, 'is no plan', flaws)
}

function wrong(file: string, what: string, flaws: Flaw[]): CommandFailed {
  const lines = flaws.map(({ path, message }) => `${path}: ${message}`)
  return new CommandFailed('usage', [`${file} ${what}:`, ...lines].join('\n'))
}

function parsed(file: string): unknown {
  let text: string
  try {
    text = readFileSync(file === '-' ? 0 : file, 'utf8')
  } catch (error) {
    const missing = z.object({ code: z.literal('ENOENT') }).safeParse(error).success
    throw new CommandFailed('notFound', missing ? `There is no file ${file}.` : `${file} cannot be read.`)
  }
  // YAML holds JSON as well, but takes its time over a large one.
  if (/^\s*\{/.test(text)) {
    try {
      return JSON.parse(text)
    } catch {
      // YAML knows the line.
    }
  }
  const document = parseDocument(text, { prettyErrors: true })
  const first = document.errors[0]
  if (first) {
    const at = first.linePos?.[0]
    const message = first.message.replace(/ at line \d+, column \d+:[\s\S]*$/, '')
    throw new CommandFailed('usage', `${file}${at ? `, line ${at.line}, column ${at.col}` : ''}: ${message}`)
  }
  try {
    return document.toJS({ maxAliasCount: 100 })
  } catch (error) {
    throw new CommandFailed('usage', `${file}: ${error instanceof Error ? error.message : error}`)
  }
}
