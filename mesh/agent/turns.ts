const turns = new Map<string, Promise<unknown>>()

/** One after the other for the same name, in the order they were asked for: for acts of this process that must not mix. */
export async function inTurn<T>(name: string, act: () => Promise<T>): Promise<T> {
  const before = turns.get(name) ?? Promise.resolve()
  const mine = before.then(act, act)
  turns.set(name, mine)
  try {
    return await mine
  } finally {
    if (turns.get(name) === mine) turns.delete(name)
  }
}
