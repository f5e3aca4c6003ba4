import type { CliCommand } from './connection.ts'

export function addMigrateCommand(program: CliCommand): void {
  program
    .command('migrate')
    .description("bring the database's schema to this release, and create the tokens that the environment names")
    .addHelpText(
      'after',
      '\nReads DATABASE_URL, whose login must own the database. A second run changes nothing.\n\n' +
        'Example:\n  DATABASE_URL=postgresql://nightshift:…@127.0.0.1:5432/nightshift nightshift migrate',
    )
    // Imported here, because the module is slow to load and the help does not need it.
    .action(async () => await (await import('../start/prepare.ts')).prepareProduction())
}
