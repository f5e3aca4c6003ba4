// Plain JavaScript for Node 20 and later. It runs before any installation, so it imports only
// modules of Node.

import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { constants } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The root of the checkout. */
export const rootDir = dirname(dirname(fileURLToPath(import.meta.url)))

/**
 * Runs `node ...args` under Node 24, after installing missing or outdated dependencies. Ends this
 * process with the command's exit code.
 */
export async function runUnderNode24(args, { cwd = process.cwd() } = {}) {
  const reason = whyInstall(rootDir)
  if (reason) install(reason)

  const node = findNode24(rootDir)
  if (!node) {
    process.stderr.write(
      `Nightshift needs Node 24; this is Node ${process.versions.node}, and no node-${process.platform}-${process.arch} package is installed.\n` +
        'Install Node 24 (https://nodejs.org), or run "npm ci --include=optional" where that package exists (linux-x64, linux-arm64).\n',
    )
    process.exit(1)
  }

  const child = spawn(node, args, {
    cwd,
    stdio: 'inherit',
    // Gives the command this Node for every program that it starts as "node".
    env: { ...process.env, PATH: [dirname(node), process.env.PATH].filter(Boolean).join(delimiter) },
  })

  // Ignores SIGINT, which the terminal also sends to the child. This process waits until the child
  // has stopped its parts, so that the shell prompt does not come early.
  process.on('SIGINT', () => {})
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))

  child.on('error', (error) => {
    process.stderr.write(`${node} did not start: ${error.message}\n`)
    process.exit(1)
  })
  child.on('exit', (code, signal) => process.exit(code ?? 128 + (constants.signals[signal] ?? 0)))
}

/**
 * Returns why `npm ci` has to run in `dir`. Undefined if the installed packages are those of the
 * lockfile.
 */
export function whyInstall(dir) {
  const lock = join(dir, 'package-lock.json')
  const installed = join(dir, 'node_modules', '.package-lock.json')
  if (!existsSync(installed) || !existsSync(lock)) return 'nothing is installed yet'
  if (statSync(lock).mtimeMs <= statSync(installed).mtimeMs) return undefined

  // Compares versions too, because a checkout or copy renews the lockfile's date. Dates alone would
  // cause needless installations.
  const wanted = JSON.parse(readFileSync(lock, 'utf8')).packages
  const present = JSON.parse(readFileSync(installed, 'utf8')).packages
  for (const [path, entry] of Object.entries(wanted)) {
    if (path === '') continue
    const found = present[path]
    if (found ? found.version !== entry.version : !entry.optional && !entry.peer) {
      return `package-lock.json asks for ${path.replace(/^.*node_modules\//, '')} ${entry.version}, which is not installed`
    }
  }
  return undefined
}

/** Returns the path of Node 24 or later: this Node, or else npm's. Undefined without either. */
function findNode24(dir) {
  if (Number(process.versions.node.split('.')[0]) >= 24) return process.execPath
  const packaged = join(dir, 'node_modules', `node-${process.platform}-${process.arch}`, 'bin', 'node')
  return existsSync(packaged) ? packaged : undefined
}

function install(reason) {
  // Refuses an installed package, because it has neither the lockfile nor the tools that the start
  // needs.
  if (rootDir.includes('/node_modules/')) {
    process.stderr.write(
      'Nightshift runs from a checkout: git clone it to /opt/nightshift, run "npm ci" there, and\n' +
        '  ln -s /opt/nightshift/bin/nightshift.js /usr/local/bin/nightshift\n',
    )
    process.exit(1)
  }
  process.stderr.write(`Installing dependencies with "npm ci", because ${reason}. This takes a minute.\n`)
  const npm = process.env.npm_execpath?.endsWith('npm-cli.js') ? [process.execPath, process.env.npm_execpath] : ['npm']
  const result = spawnSync(
    npm[0],
    [...npm.slice(1), 'ci', '--include=dev', '--include=optional', '--no-audit', '--no-fund', '--loglevel=error'],
    // Writes to stderr, so that the output of a command that prints JSON remains JSON.
    { cwd: rootDir, stdio: ['ignore', 2, 2] },
  )
  if (result.status !== 0) {
    process.stderr.write(
      '"npm ci" failed, see above. Put that right (network, disk space, permissions) and try again.\n',
    )
    process.exit(1)
  }
}
