import { constants } from 'node:fs'
import { open, readdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { parseDocument } from 'yaml'
import { sha256 } from '../domain/digest.ts'
import { frontMatter, type RefusedFile, type Runbook, type RunbookOrigin, runbookName } from '../domain/runbook.ts'
import { nameFaults } from '../domain/schema-faults.ts'
import { cleanse } from '../safety/redact.ts'
import type { FoundPolicy } from './policy-file.ts'

/** A runbook's file that was found, before any check. `problem`: why the file cannot be read. */
export type FoundFile = { name: string; bytes: Uint8Array } | { name: string; problem: Fault }
type Fault = { why: string; remedy: string }
export type ReadRunbooks = { runbooks: Runbook[]; refused: RefusedFile[]; policies?: FoundPolicy[] }

export const maxFileBytes = 32_768
export const maxFiles = 300
export const fileName = 'SKILL.md'

export const faults = {
  tooLarge: (bytes: number): Fault => ({
    why: `it has ${bytes} bytes, and at most ${maxFileBytes} are allowed`,
    remedy: 'split it into several runbooks',
  }),
  leadsOut: { why: 'a symbolic link points out of its folder', remedy: 'put the file itself in its place' },
  link: { why: 'it is a symbolic link', remedy: 'put the file itself in its place' },
  notAFile: { why: 'it is not a plain file', remedy: 'put a plain file in its place' },
  tooMany: (count: number): Fault => ({
    why: `the folder has ${count} runbooks, and at most ${maxFiles} are allowed`,
    remedy: 'name the folder of the runbooks that this site needs',
  }),
  unreadable: (code: string): Fault => ({
    why: `it cannot be read (${code})`,
    remedy: 'let the API process read the file',
  }),
}

/** Parses files one by one. A bad file is refused by its name, and all other files are accepted. */
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
  if (text === null) return { why: 'the file is not UTF-8', remedy: 'save the file as UTF-8' }
  const [, head, body] = /^---\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|$)(.*)$/s.exec(text) ?? []
  if (head === undefined || body === undefined)
    return { why: 'it does not begin with front matter', remedy: 'begin with ---, name, description and ---' }
  const document = parseDocument(head, { schema: 'core', stringKeys: true })
  const [error] = document.errors
  if (error) return noYaml(error)
  const parsed = frontMatter.safeParse(toPlain(document))
  if (!parsed.success)
    return {
      why: `the front matter is not valid: ${nameFaults(parsed.error, { whole: 'front matter', max: 3 })}`.slice(
        0,
        400,
      ),
      remedy: 'docs/how-to/write-runbooks.md',
    }
  const { name, description, owner = null, reviewed_at: reviewedAt = null, ...rest } = parsed.data
  if (name !== folder)
    return { why: `the runbook's name is ${name} and its folder is ${folder}`, remedy: 'give both the same name' }
  // Removes secrets first, because the untrusted text is stored, shown and sent afterwards.
  const clean = cleanse({ description, owner, body: body.trim() })
  if (clean.body === '')
    return { why: 'the runbook has no text after its front matter', remedy: 'write what to do in the incident' }
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

/**
 * Describes a YAML error with its line, counted from the beginning of the front matter. Missing
 * quotes are the most common mistake.
 */
function noYaml({ message, linePos }: { message: string; linePos?: readonly { line: number }[] }): Fault {
  const line = linePos?.[0] ? `line ${linePos[0].line + 1}` : 'its front matter'
  const why = message.replace(/ at line \d+[\s\S]*$/, '')
  return { why: `${line} is not valid YAML: ${why}`, remedy: 'correct the YAML, and put a text with a colon in quotes' }
}

function decode(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return null
  }
}

/**
 * Converts YAML to plain values. Refuses aliases: they could expand beyond memory, and front matter
 * needs no alias.
 */
function toPlain(document: ReturnType<typeof parseDocument>): unknown {
  try {
    return document.toJS({ maxAliasCount: 0 })
  } catch {
    return 'aliases'
  }
}

/**
 * Reads the runbooks of a folder: `<name>/SKILL.md`, one level deep. Refuses a symbolic link that
 * leads out of the folder. Throws if the folder cannot be read.
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
 * Finds the runbook in one subfolder; null if there is none. Follows a symbolic link within the
 * folder, because mounted Kubernetes volumes consist of links.
 */
async function findFile(root: string, name: string): Promise<FoundFile | null> {
  const shown = runbookName.safeParse(name).success ? name : name.slice(0, 64)
  try {
    const path = await realpath(join(root, name, fileName))
    if (!path.startsWith(`${root}/`)) return { name: shown, problem: faults.leadsOut }
    // Opens the file without following symbolic links, because it may have been replaced since the
    // check.
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
