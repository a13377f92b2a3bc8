-- The tables of a project, first version; schema_2.sql adds to them. SQLite and PostgreSQL share these files;
-- triggers.sql and triggers_postgres.sql guard them.
-- Times are UNIX seconds; durations are seconds; truths are 0 and 1.

CREATE TABLE instrument (            -- every version of collect.toml that has been served
    version TEXT PRIMARY KEY,
    text TEXT NOT NULL,
    layout TEXT NOT NULL,
    classes INTEGER NOT NULL CHECK (classes > 0),
    class_names TEXT NOT NULL,       -- a JSON list, in class order
    k INTEGER NOT NULL CHECK (k > 0),
    vote_items INTEGER NOT NULL,     -- not used any more
    since REAL NOT NULL
) STRICT;

CREATE TABLE item (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    role TEXT NOT NULL CHECK (role IN ('vote', 'gold', 'practice')),
    media TEXT,                      -- a file, relative to the folder of images
    text TEXT,
    wanted INTEGER NOT NULL CHECK (wanted >= 0),
    counted INTEGER NOT NULL DEFAULT 0 CHECK (counted >= 0),
    leased INTEGER NOT NULL DEFAULT 0 CHECK (leased >= 0),
    free INTEGER NOT NULL CHECK (free >= 0),  -- slots; none is ever given twice, so votes are exactly k
    problems INTEGER NOT NULL DEFAULT 0,
    spread REAL NOT NULL,            -- the item's place in [0, 1), by which the next item is found
    CHECK ((media IS NULL) <> (text IS NULL)),
    CHECK (free = wanted - counted - leased)
) STRICT;
CREATE INDEX item_free ON item (spread) WHERE free > 0;
CREATE INDEX item_role ON item (role, spread) WHERE role <> 'vote';

CREATE TABLE annotator (
    id INTEGER PRIMARY KEY,
    pseudonym TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL CHECK (state IN ('arrived', 'consented', 'practised', 'working', 'finished', 'no-consent',
                                         'screened-out', 'technical', 'deleted')),
    paid INTEGER NOT NULL DEFAULT 0 CHECK (paid IN (0, 1)),
    counts INTEGER NOT NULL DEFAULT 1 CHECK (counts IN (0, 1)),
    exported INTEGER NOT NULL DEFAULT 1 CHECK (exported IN (0, 1)),
    kept INTEGER NOT NULL DEFAULT 0 CHECK (kept IN (0, 1)),  -- a researcher included them: no rule overrules that
    reason TEXT,                     -- why excluded
    done INTEGER NOT NULL DEFAULT 0, -- items judged, without gold
    gold_done INTEGER NOT NULL DEFAULT 0,
    gold_missed INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0,  -- at the practice
    misunderstood INTEGER NOT NULL DEFAULT 0,  -- failed attempts at the comprehension questions
    tab TEXT,                        -- the browser tab that is at work
    seen_at REAL NOT NULL,
    waiting_since REAL,              -- for an item
    reopened INTEGER,                -- the assignment that the annotator went back to
    arrived_at REAL NOT NULL,
    consented_at REAL,
    finished_at REAL,
    asked_at REAL                    -- when the final questions were handed in
) STRICT;

CREATE TABLE identity (              -- the only table that can tell who an annotator is
    annotator INTEGER PRIMARY KEY REFERENCES annotator (id),
    platform TEXT NOT NULL,
    external TEXT NOT NULL,
    study TEXT,
    session TEXT,
    UNIQUE (platform, external)
) STRICT;

CREATE TABLE final_answer (          -- what is known of annotators: answers about themselves, and what their link or platform says
    annotator INTEGER NOT NULL REFERENCES annotator (id),
    name TEXT NOT NULL,              -- of the question, the parameter or the column
    answer TEXT NOT NULL,
    PRIMARY KEY (annotator, name)
) STRICT;

CREATE TABLE session (
    hash TEXT PRIMARY KEY,           -- SHA-256 of the cookie
    annotator INTEGER NOT NULL REFERENCES annotator (id),
    since REAL NOT NULL
) STRICT;
CREATE INDEX session_annotator ON session (annotator);

CREATE TABLE assignment (            -- an item that was shown to an annotator: first a lease, then done
    id INTEGER PRIMARY KEY,
    token TEXT NOT NULL UNIQUE,      -- what the browser calls it
    item INTEGER NOT NULL REFERENCES item (id),
    annotator INTEGER NOT NULL REFERENCES annotator (id),
    state TEXT NOT NULL CHECK (state IN ('open', 'done', 'expired', 'problem', 'deleted')),
    holds INTEGER NOT NULL CHECK (holds IN (0, 1)),    -- an open lease that holds one of the item's slots
    counts INTEGER NOT NULL DEFAULT 0 CHECK (counts IN (0, 1)),
    late INTEGER NOT NULL DEFAULT 0 CHECK (late IN (0, 1)),
    missed INTEGER CHECK (missed IN (0, 1)),           -- whether a gold item was answered wrongly
    number INTEGER NOT NULL,         -- the item's place among those of the annotator
    class_order TEXT NOT NULL,       -- a JSON list of classes, as shown
    version TEXT NOT NULL REFERENCES instrument (version),
    leased_at REAL NOT NULL,
    expires REAL NOT NULL,
    done_at REAL,
    draft TEXT,                      -- JSON, half-filled answers
    problem TEXT,                    -- reported by the annotator, in words: not for the log, which is kept for ever
    UNIQUE (item, annotator),        -- nobody judges an item twice
    CHECK (holds = 0 OR state = 'open'),
    CHECK (counts = 0 OR state = 'done'),
    CHECK ((state = 'done') = (done_at IS NOT NULL))
) STRICT;
CREATE INDEX assignment_expires ON assignment (expires) WHERE state = 'open';
CREATE INDEX assignment_annotator ON assignment (annotator, state);

CREATE TABLE judgement (             -- one saved answer; an edited one keeps its earlier revisions
    id INTEGER PRIMARY KEY,
    assignment INTEGER NOT NULL REFERENCES assignment (id),
    uuid TEXT NOT NULL UNIQUE,       -- of the browser: a save that arrives twice is stored once
    revision INTEGER NOT NULL,
    current INTEGER NOT NULL CHECK (current IN (0, 1)),
    saved_at REAL NOT NULL,
    seconds REAL,
    hidden_seconds REAL,
    input TEXT CHECK (input IN ('key', 'mouse', 'touch', 'mixed')),
    window_size TEXT,                -- JSON: width, height, device pixels per CSS pixel
    frame_ms REAL,
    UNIQUE (assignment, revision)
) STRICT;

CREATE TABLE response (
    judgement INTEGER NOT NULL REFERENCES judgement (id),
    class INTEGER NOT NULL CHECK (class >= 0),
    value INTEGER NOT NULL CHECK (value IN (0, 1, 2)),  -- no, yes, unsure
    amount REAL,                     -- points or rating, where the layout asks for them
    first_seconds REAL,              -- from the first frame to the first answer
    last_seconds REAL,
    changes INTEGER,
    PRIMARY KEY (judgement, class)
) STRICT;

CREATE TABLE event (                 -- append-only
    id INTEGER PRIMARY KEY,
    at REAL NOT NULL,
    annotator INTEGER,
    kind TEXT NOT NULL,
    detail TEXT NOT NULL             -- JSON
) STRICT;
CREATE INDEX event_kind ON event (kind, annotator);

CREATE TABLE decision (              -- changes to how many votes an item wants
    id INTEGER PRIMARY KEY,
    at REAL NOT NULL,
    item INTEGER NOT NULL REFERENCES item (id),
    wanted_before INTEGER NOT NULL,
    wanted INTEGER NOT NULL,
    inclusion REAL NOT NULL DEFAULT 1.0 CHECK (inclusion > 0 AND inclusion <= 1),  -- probability of being drawn
    reason TEXT NOT NULL
) STRICT;
