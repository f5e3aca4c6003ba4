import { join } from 'node:path'
import type { Page } from 'playwright-core'

/** Keeps a picture of the page in the folder that SCREENSHOTS names, to look at what a test saw. */
export async function screenshot(page: Page, name: string): Promise<void> {
  const folder = process.env.SCREENSHOTS
  if (folder) await page.screenshot({ path: join(folder, `${name}.png`) })
}
