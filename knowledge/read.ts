import { constants } from 'node:fs'
import { open, readdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { parseDocument } from 'yaml'
import { sha256 } from '../domain/digest.ts'
import { frontMatter, type RefusedFile, type Runbook, type RunbookOrigin, runbookName } from '../domain/runbook.ts'
import { nameFaults } from '../domain/schema-faults.ts'
import { cleanse } from '../safety/redact.ts'
import type { FoundPolicy } from './policy-file.ts'

/** A file as found, before any of it is believed. `problem`: why it is not even read. */
export type FoundFile = { name: string; bytes: Uint8Array } | { name: string; problem: Fault }
type Fault = { why: string; remedy: string }
export type ReadRunbooks = { runbooks: Runbook[]; refused: RefusedFile[]; policies?: FoundPolicy[] }

export const maxFileBytes = 32_768
export const maxFiles = 300
export const fileName = 'SKILL.md'

export const faults = {
  tooLarge: (bytes: number): Fault => ({
    why: `it has ${bytes} bytes, and ${maxFileBytes} are the most`,
    remedy: 'split it into several runbooks',
  }),
  leadsOut: { why: 'a symbolic link leads out of its place', remedy: 'put the file itself there' },
  link: { why: 'it is a symbolic link', remedy: 'put the file itself there' },
  notAFile: { why: 'it is not a plain file', remedy: 'put a file there' },
  tooMany: (count: number): Fault => ({
    why: `the place has ${count} runbooks, and ${maxFiles} are the most`,
    remedy: 'name the folder of the runbooks that this site needs',
  }),
  unreadable: (code: string): Fault => ({ why: `it cannot be read (${code})`, remedy: 'let the API process read it' }),
}

/** Takes files apart one by one: a bad one is refused by its name, and the others are taken. */
export function parseFiles(origin: RunbookOrigin, files: readonly FoundFile[]): ReadRunbooks {
  const runbooks: Runbook[] = []
  const refused: RefusedFile[] = []
  for (const file of files) {
    const found = 'problem' in file ? file.problem : parseFile(origin, file.name, file.bytes)
    if ('why' in found) refused.push(cleanse({ origin, file: join(file.name, fileName), ...found }))
    else runbooks.push(found)
  }
  return { runbooks, refused }
}

function parseFile(origin: RunbookOrigin, folder: string, bytes: Uint8Array): Runbook | Fault {
  if (bytes.length > maxFileBytes) return faults.tooLarge(bytes.length)
  const text = decode(bytes)
  if (text === null) return { why: 'it is not UTF-8', remedy: 'save it as UTF-8' }
  const [, head, body] = /^---\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|$)(.*)$/s.exec(text) ?? []
  if (head === undefined || body === undefined)
    return { why: 'it does not begin with front matter', remedy: 'begin with ---, name, description and ---' }
  const document = parseDocument(head, { schema: 'core', stringKeys: true })
  const [error] = document.errors
  if (error) return noYaml(error)
  const parsed = frontMatter.safeParse(toPlain(document))
  if (!parsed.success)
    return {
      why: `its front matter is wrong: ${nameFaults(parsed.error, { whole: 'front matter', max: 3 })}`.slice(0, 400),
      remedy: 'docs/how-to/write-runbooks.md',
    }
  const { name, description, owner = null, reviewed_at: reviewedAt = null, ...rest } = parsed.data
  if (name !== folder)
    return { why: `its name is ${name} and its folder is ${folder}`, remedy: 'give both the same name' }
  // What a stranger may have written is stored, shown and sent from here on.
  const clean = cleanse({ description, owner, body: body.trim() })
  if (clean.body === '') return { why: 'it says nothing after its front matter', remedy: 'write what to do' }
  return {
    ...clean,
    name,
    reviewedAt,
    incidentTypes: rest.incident_types,
    resourceKinds: rest.resource_kinds,
    origin,
    replaces: [],
    digest: sha256(clean.body),
    bytes: Buffer.byteLength(clean.body),
  }
}

/** Lines are counted from the front matter's beginning. Quotes are what people forget most. */
function noYaml({ message, linePos }: { message: string; linePos?: readonly { line: number }[] }): Fault {
  const line = linePos?.[0] ? `line ${linePos[0].line + 1}` : 'its front matter'
  const why = message.replace(/ at line \d+[\s\S]*$/, '')
  return { why: `${line} is no YAML: ${why}`, remedy: 'correct it; a text with a colon in it stands in quotes' }
}

function decode(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return null
  }
}

/** An alias may unfold to more than memory holds: the front matter needs none. */
function toPlain(document: ReturnType<typeof parseDocument>): unknown {
  try {
    return document.toJS({ maxAliasCount: 0 })
  } catch {
    return 'aliases'
  }
}

/**
 * A folder's runbooks: `<name>/SKILL.md`, one level deep. Reads no file from elsewhere: refuses a
 * link that leads out. Throws where the folder cannot be read.
 */
export async function readFolder(origin: RunbookOrigin, directory: string): Promise<ReadRunbooks> {
  const root = await realpath(directory)
  const entries = (await readdir(root, { withFileTypes: true }))
    .filter((entry) => (entry.isDirectory() || entry.isSymbolicLink()) && !entry.name.startsWith('.'))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
  const found: FoundFile[] = []
  for (const { name } of entries.slice(0, maxFiles)) {
    const file = await findFile(root, name)
    if (file) found.push(file)
  }
  if (entries.length > maxFiles) found.push({ name: entries[maxFiles]!.name, problem: faults.tooMany(entries.length) })
  return parseFiles(origin, found)
}

/**
 * Null: a folder without a runbook. A link is read where it lies in the folder, as mounted volumes
 * have it.
 */
async function findFile(root: string, name: string): Promise<FoundFile | null> {
  const shown = runbookName.safeParse(name).success ? name : name.slice(0, 64)
  try {
    const path = await realpath(join(root, name, fileName))
    if (!path.startsWith(`${root}/`)) return { name: shown, problem: faults.leadsOut }
    // Without following: it may have been exchanged since the look.
    const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    try {
      const looked = await handle.stat()
      if (!looked.isFile()) return { name: shown, problem: faults.notAFile }
      if (looked.size > maxFileBytes) return { name: shown, problem: faults.tooLarge(looked.size) }
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(maxFileBytes + 1), 0, maxFileBytes + 1, 0)
      return { name, bytes: buffer.subarray(0, bytesRead) }
    } finally {
      await handle.close()
    }
  } catch (error) {
    const { code = 'failed' } = error as { code?: string }
    return code === 'ENOENT' || code === 'ENOTDIR' ? null : { name: shown, problem: faults.unreadable(code) }
  }
}
