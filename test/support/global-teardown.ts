/** Runs once after the last test file, also when tests have failed. */
export default async function globalTeardown(): Promise<void> {
  // A handle that a failed test leaves behind must not hold the whole run; where none is left this
  // holds nothing either.
  setTimeout(() => process.exit(), 20_000).unref()
  await (globalThis as { stopTestServers?: () => Promise<void> }).stopTestServers?.()
}
