import { type Document, isAlias, isNode, LineCounter, parseDocument, visit } from 'yaml'
import { sha256 } from '../../domain/digest.ts'
import { listFaults } from '../../domain/schema-faults.ts'
import { type SitePolicy, sitePolicy } from '../../domain/site-policy.ts'
import type { ToolFacts } from '../../domain/tool.ts'
import { checkOrder, checkRules } from './check.ts'
import { type CompiledPolicy, compilePolicy } from './compile.ts'
import { compileWindow } from './windows.ts'

/** A fault in a policy file, with its line, reason and remedy. */
export type PolicyFault = { line: number; why: string; remedy: string }

type Refused = { ok: false; faults: PolicyFault[] }
type Parsed = { ok: true; policy: SitePolicy; text: string; lines: PolicyLines }
type ReadPolicy = (Parsed & { compiled: CompiledPolicy }) | Refused

/** Finds the line of a part of the file by its path. */
export type PolicyLines = (path: readonly PropertyKey[]) => number

export const maxPolicyBytes = 1_048_576
const maxFaults = 20

/** Parses a file, checks its rules against each other and the tools. One fault refuses the file. */
export function readSitePolicy(
  bytes: Uint8Array | string,
  tools: ReadonlyMap<string, ToolFacts>,
  commit: string | null,
): ReadPolicy {
  const parsed = parseSitePolicy(bytes)
  if (!parsed.ok) return parsed
  const { policy, text, lines } = parsed
  const faults = [...checkWindows(policy, lines), ...checkRules(policy, tools, lines)]
  if (faults.length > 0) return { ok: false, faults: faults.slice(0, maxFaults) }
  const lineOf = (at: number) => lines(['rules', at])
  const compiled = compilePolicy(policy, { digest: sha256(text), commit, lineOf })
  const covered = checkOrder(compiled, tools).slice(0, maxFaults)
  return covered.length > 0 ? { ok: false, faults: covered } : { ...parsed, compiled }
}

/** Parses a file and checks only its form. */
export function parseSitePolicy(bytes: Uint8Array | string): Parsed | Refused {
  const refuse = (line: number, why: string, remedy: string): Refused => ({
    ok: false,
    faults: [{ line, why, remedy }],
  })
  const size = typeof bytes === 'string' ? Buffer.byteLength(bytes) : bytes.length
  if (size > maxPolicyBytes)
    return refuse(
      1,
      `the file has more than ${maxPolicyBytes} bytes`,
      'name resources by kind and label, not one by one',
    )
  const text = decode(bytes)
  if (text === null) return refuse(1, 'the file is not UTF-8', 'save the file as UTF-8')
  const counter = new LineCounter()
  const parsed = parseYaml(text, counter)
  if ('why' in parsed) return refuse(parsed.line, parsed.why, parsed.remedy)
  const lines: PolicyLines = (path) => lineAt(parsed, counter, path)
  const read = sitePolicy.safeParse(parsed.toJS({ maxAliasCount: 0 }))
  if (read.success) return { ok: true, policy: read.data, text, lines }
  const faults = listFaults(read.error, maxFaults).map(({ path, field, message }) => ({
    line: lines(path),
    why: `${field || 'the file'}: ${message}`.slice(0, 400),
    remedy: 'docs/reference/policy.md shows the format',
  }))
  return { ok: false, faults }
}

function checkWindows(policy: SitePolicy, lines: PolicyLines): PolicyFault[] {
  return Object.entries(policy.windows).flatMap(([name, window]) => {
    const compiled = compileWindow(name, window)
    if (!('why' in compiled)) return []
    return [{ line: lines(['windows', name]), why: `the window ${name}: ${compiled.why}`, remedy: compiled.remedy }]
  })
}

/** Refuses anchors and aliases, which may expand beyond memory and which a policy does not need. */
function parseYaml(text: string, lineCounter: LineCounter): Document.Parsed | PolicyFault {
  const place = (offset: number | undefined) => lineCounter.linePos(offset ?? 0).line || 1
  try {
    const document = parseDocument(text, { schema: 'core', stringKeys: true, lineCounter })
    const [error] = document.errors
    if (error) {
      const why = `the file is not valid YAML: ${error.message.replace(/ at line \d+[\s\S]*$/, '')}`
      return { line: place(error.pos[0]), why, remedy: 'correct the YAML, and put a text with a colon in quotes' }
    }
    let anchored: number | null = null
    visit(document, {
      Node(_, node) {
        if (!isAlias(node) && !node.anchor) return undefined
        anchored = node.range?.[0] ?? 0
        return visit.BREAK
      },
    })
    if (anchored === null) return document
    return {
      line: place(anchored),
      why: 'the file has an anchor or an alias (& or *)',
      remedy: 'write the value itself',
    }
  } catch {
    // Reports a file that is nested too deeply for the parser's stack.
    return { line: 1, why: 'the file is nested too deeply', remedy: 'docs/reference/policy.md shows the format' }
  }
}

/** Returns the line of the path's nearest part that is in the file. */
function lineAt(document: Document.Parsed, counter: LineCounter, path: readonly PropertyKey[]): number {
  for (let length = path.length; length >= 0; length -= 1) {
    const node = length === 0 ? document.contents : document.getIn(path.slice(0, length), true)
    if (isNode(node) && node.range) return counter.linePos(node.range[0]).line || 1
  }
  return 1
}

function decode(bytes: Uint8Array | string): string | null {
  if (typeof bytes === 'string') return bytes
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return null
  }
}
