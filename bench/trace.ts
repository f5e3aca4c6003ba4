import { Session } from 'node:inspector/promises'

const root = new URL('../', import.meta.url).href

/**
 * The files of the product in which a function ran while `act` did, in the order of their names: by V8's call counts, which begin
 * at zero with it. What only loads counts for nothing; neither do tests and packages.
 */
export async function traceFiles(act: () => Promise<unknown>): Promise<string[]> {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  try {
    await act()
    const { result } = await session.post('Profiler.takePreciseCoverage')
    const ran = result.filter(({ functions }) =>
      functions.some(({ functionName, ranges }) => functionName !== '' && (ranges[0]?.count ?? 0) > 0),
    )
    const files = ran
      .filter(({ url }) => url.startsWith(root) && !/\/(node_modules|test|bench)\//.test(url))
      .map(({ url }) => url.slice(root.length).replace(/\?.*/, ''))
    return [...new Set(files)].sort()
  } finally {
    await session.post('Profiler.stopPreciseCoverage')
    session.disconnect()
  }
}
