import type { Server } from 'node:http'
import { join } from 'node:path'
import { serve } from '@hono/node-server'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import type { Browser } from 'playwright-core'
import { createApi } from '../../api/app.ts'
import { createOidc } from '../../clients/oidc.ts'
import { ensureWeb, rootDir } from '../../start/web.ts'
import { launch } from '../support/chromium.ts'
import { useDatabase } from '../support/database.ts'
import { freePort } from '../support/directory.ts'
import { calmDown, type ScriptedOidc, startScriptedOidc } from '../support/scripted-oidc.ts'

const database = useDatabase()
let provider: ScriptedOidc
let browser: Browser
let server: Server
let url: string

beforeAll(async () => {
  await ensureWeb()
  provider = await startScriptedOidc()
  const port = await freePort()
  // Two names of this machine are two sites to a browser: what it keeps from strangers, it keeps
  // from this provider.
  url = `http://localhost:${port}`
  const oidc = createOidc({
    issuer: provider.issuer,
    clientId: provider.clientId,
    clientSecret: provider.clientSecret,
    publicUrl: url,
    scopes: 'openid',
    groupsClaim: 'groups',
    roles: { sre: 'approver' },
  })
  const { app } = createApi({ db: database.db, publicUrl: url, oidc, webDir: join(rootDir, 'web', 'dist') })
  server = serve({ fetch: app.fetch, port, hostname: '127.0.0.1' }) as Server
  browser = await launch()
})
afterAll(async () => {
  await browser?.close()
  server?.closeAllConnections()
  server?.close()
  await provider?.stop()
})

test('a person who follows the link to their organisation returns signed in, to the wanted page', async () => {
  const page = await browser.newPage()
  await page.goto(`${url}/approvals?status=pending`)
  await page.getByRole('link', { name: 'sign in with your organisation' }).click()
  await page.getByRole('heading', { name: 'Approvals' }).waitFor()
  expect(page.url()).toBe(`${url}/approvals?status=pending`)
  const cookies = await page.context().cookies(url)
  expect(cookies).toMatchObject([{ name: '__Host-nightshift', httpOnly: true, secure: true, sameSite: 'Strict' }])
  await page.close()
})

test('a person without a role is told so on a page, and can try again', async () => {
  provider.mood.person = { sub: 'u-9', preferred_username: 'sally', groups: ['sales'] }
  const context = await browser.newContext()
  const page = await context.newPage()
  await page.goto(`${url}/sign-in`)
  await page.getByRole('link', { name: 'sign in with your organisation' }).click()
  await page.getByText('None of your groups has a role in Nightshift, sally').waitFor()
  expect(await context.cookies(url)).toEqual([])
  calmDown(provider)
  await page.getByRole('link', { name: 'Sign in again' }).click()
  await page.getByRole('heading', { level: 1 }).waitFor()
  expect(await context.cookies(url)).toHaveLength(1)
  await context.close()
})
