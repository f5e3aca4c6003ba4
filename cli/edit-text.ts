import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CommandFailed } from './exit-code.ts'

/** Opens the text in the person's editor and answers what it was saved as. The file is theirs alone and gone afterwards. */
export function editText(text: string): string {
  const editor = process.env.VISUAL || process.env.EDITOR || 'vi'
  const directory = mkdtempSync(join(tmpdir(), 'nightshift-edit-'))
  const file = join(directory, 'arguments.json')
  try {
    writeFileSync(file, `${text}\n`, { mode: 0o600 })
    // Through a shell, as git does: an editor may come with options.
    const { status, error } = spawnSync(`${editor} "$1"`, ['sh', file], { shell: '/bin/sh', stdio: 'inherit' })
    if (error || status !== 0) throw new CommandFailed('error', `${editor} did not end well. Nothing was decided.`)
    return readFileSync(file, 'utf8')
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}
