import { spawn } from 'node:child_process'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { ensureMeshKeys } from '../../start/mesh-keys.ts'
import { commandBlocks } from '../docs/command-blocks.ts'
import { type Site, walks, writeFiles } from '../docs/walks.ts'
import { compileCache, temporaryDirectory } from '../support/directory.ts'
import { emptyDir, tokenFile } from '../support/run-cli.ts'
import { startSpine } from '../support/spine.ts'

// The documentation's commands, typed word for word on a running site, which takes them all.

const place = temporaryDirectory()
const folder = join(place.path, 'home')
const knowledge = join(place.path, 'knowledge')
let site: Site

beforeAll(async () => {
  for (const each of [folder, knowledge]) mkdirSync(each)
  writeFiles({ folder, knowledge })
  const spine = await startSpine({
    parts: ['lab', 'runbook', 'api', 'worker'],
    environment: { KNOWLEDGE_PATH: knowledge, ...ensureMeshKeys(place.path) },
  })
  site = { spine, folder, knowledge, type: shellOf(spine.url, spine.tokens.admin) }
})
afterAll(async () => {
  await site?.spine.stop()
  place.remove()
})

/** Somebody's shell: it has the command under its name, and nobody answers at its terminal. */
function shellOf(url: string, token: string): Site['type'] {
  const programs = join(place.path, 'bin')
  mkdirSync(programs)
  const command = join(programs, 'nightshift')
  const entry = join(import.meta.dirname, '../../cli/main.ts')
  writeFileSync(command, `#!/bin/sh\nexec ${process.execPath} --disable-warning=ExperimentalWarning ${entry} "$@"\n`)
  chmodSync(command, 0o755)
  const env = {
    PATH: `${programs}:${process.env.PATH}`,
    HOME: folder,
    TZ: 'UTC',
    NODE_COMPILE_CACHE: compileCache,
    NIGHTSHIFT_STATE_DIR: emptyDir,
    NIGHTSHIFT_URL: url,
    NIGHTSHIFT_TOKEN_FILE: tokenFile(token),
  }
  return async (line) => {
    const shell = spawn('bash', ['-o', 'pipefail', '-c', line], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] })
    let said = ''
    for (const stream of [shell.stdout, shell.stderr])
      stream.on('data', (chunk) => {
        said += chunk
      })
    const code = await new Promise<number | null>((resolve) => shell.on('close', resolve))
    if (process.env.SHOW) console.log(`$ ${line}\n${said}`)
    return { code, said }
  }
}

test.each(walks)('the commands of $page run as written there', async ({ page, before = {}, fill = {} }) => {
  const filled = new Map<string, string>()
  const failed: string[] = []
  const lines = commandBlocks(page)
    .filter(({ mark }) => mark === null)
    .flatMap(({ commands }) => commands)
  const events = new Map(Object.entries(before))
  for (const line of lines) {
    for (const [begins, happens] of events) {
      if (!line.startsWith(begins)) continue
      events.delete(begins)
      await happens(site)
    }
    let typed = line
    for (const [words, find] of Object.entries(fill)) {
      if (!typed.includes(words)) continue
      filled.set(words, filled.get(words) ?? (await find(site)))
      typed = typed.replaceAll(words, filled.get(words) ?? '')
    }
    const { code, said } = await site.type(typed)
    if (code !== 0) failed.push(`${typed}\nended with ${code}: ${said}`)
  }
  expect(failed).toEqual([])
  expect([...events.keys(), ...Object.keys(fill).filter((words) => !filled.has(words))]).toEqual([])
})
