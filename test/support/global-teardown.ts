/** Runs once after the last test file, also when tests have failed. */
export default async function globalTeardown(): Promise<void> {
  await (globalThis as { stopTestServers?: () => Promise<void> }).stopTestServers?.()
}
