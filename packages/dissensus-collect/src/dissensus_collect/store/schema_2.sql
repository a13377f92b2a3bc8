-- What the second version of the tables adds to schema.sql. A new database runs both files, one of the first version this
-- file alone, so that an old project opens with everything in it.

ALTER TABLE instrument ADD COLUMN form TEXT;           -- JSON: what may be answered to every question about an item
ALTER TABLE item ADD COLUMN hash TEXT;                 -- SHA-256 of the file or the text
ALTER TABLE item ADD COLUMN retired_at REAL CHECK (retired_at IS NULL OR (free = 0 AND leased = 0));
ALTER TABLE item ADD COLUMN retired_reason TEXT;
ALTER TABLE item ADD COLUMN retired_wanted INTEGER;    -- votes that it wanted before, if it is put back
ALTER TABLE annotator ADD COLUMN eligible INTEGER CHECK (eligible IN (0, 1));  -- by the questions before consent
ALTER TABLE assignment ADD COLUMN voided TEXT CHECK (voided IS NULL OR counts = 0);  -- why the judgement is not used
ALTER TABLE judgement ADD COLUMN reason TEXT;          -- why it was answered like this, in the annotator's words

CREATE TABLE payment (               -- what was decided about an annotator's pay; the last row stands
    id INTEGER PRIMARY KEY,
    at REAL NOT NULL,
    annotator INTEGER NOT NULL REFERENCES annotator (id),
    decision TEXT NOT NULL CHECK (decision IN ('approved', 'rejected')),
    pay REAL NOT NULL CHECK (pay >= 0),
    bonus REAL NOT NULL CHECK (bonus >= 0),
    currency TEXT NOT NULL,
    reason TEXT NOT NULL,
    sent_at REAL                     -- when it was written into a file for the platform
) STRICT;
CREATE INDEX payment_annotator ON payment (annotator, id);

CREATE TABLE schema_version (version INTEGER NOT NULL) STRICT;
INSERT INTO schema_version (version) VALUES (2);
