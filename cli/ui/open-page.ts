import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { print, printNote } from './terminal.ts'

/**
 * Opens a page in the person's browser: the browser in BROWSER, or else the browser of the desktop.
 * Prints the address if no browser can be opened, for example over SSH.
 */
export async function openPage(url: string): Promise<void> {
  const opener = findOpener()
  if (opener === null) return print(url)
  const child = spawn(opener, [url], { stdio: 'ignore', detached: true })
  try {
    await once(child, 'spawn')
    child.unref()
    printNote(`Opening ${url}`)
  } catch {
    print(url)
  }
}

function findOpener({ BROWSER, DISPLAY, WAYLAND_DISPLAY } = process.env): string | null {
  if (BROWSER) return BROWSER
  if (process.platform === 'darwin') return 'open'
  return process.platform === 'linux' && (DISPLAY || WAYLAND_DISPLAY) ? 'xdg-open' : null
}
