import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'

const candidates = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']

/** Debian's Chromium, headless, without any of its own requests. */
export async function launch(): Promise<Browser> {
  const executablePath = candidates.find((path) => path && existsSync(path))
  if (!executablePath) {
    throw new Error(
      'There is no Chromium: "apt-get install chromium", or name one in the environment variable CHROMIUM.',
    )
  }
  const flags = ['headless', 'no-sandbox', 'disable-gpu', 'disable-quic', 'no-first-run', 'disable-sync']
  const more = ['disable-background-networking', 'disable-component-update']
  return await chromium.launch({ executablePath, args: [...flags, ...more].map((flag) => `--${flag}`) })
}
