import { expect, test } from '@jest/globals'
import { useApi } from '../../support/api.ts'

const api = useApi()
const page = (path: string) => api.api.app.request(path)

test('a link from a message leads to the commands that show and decide its approval, without a sign-in', async () => {
  const answer = await page('/approvals/apr_01m7ytcwv43rahnzpzzeghzv30')
  expect(answer.status).toBe(200)
  expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'")
  expect(await answer.text()).toContain('approvals approve apr_01m7ytcwv43rahnzpzzeghzv30')
  expect((await page('/')).headers.get('location')).toBe('/docs')
})

test.each(['/incidents/inc_%3Cscript%3E', '/incidents/x', '/approvals/..%2f'])(
  'a link to %s shows nothing about it',
  async (path) => {
    const answer = await page(path)
    expect(answer.status).toBe(404)
    expect(answer.headers.get('content-type')).toContain('problem+json')
  },
)
