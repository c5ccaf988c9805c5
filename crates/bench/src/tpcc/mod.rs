//! TPC-C, revision 5.11: nine tables, five transactions in the standard mix, twelve consistency
//! conditions. What is asked and what is checked knows no store: it goes through [`Backend`]. One
//! backend is [`Embedded`], over any store with transactions; with the feature `mysql` there is
//! another, over any server that speaks that protocol.

mod backend;
mod codec;
mod consistency;
mod deck;
mod delivery;
mod embedded;
mod indexes;
mod input;
mod keys;
mod load;
#[cfg(test)]
mod model;
#[cfg(feature = "mysql")]
mod mysql;
mod new_order;
mod payment;
mod population;
mod query;
mod random;
mod report;
mod row_codec;
mod rows;
mod run;
mod scale;
mod store;
mod terminals;
#[cfg(test)]
mod tests;
mod text;
mod trees;
mod weir_store;

pub use backend::{
    Backend, DeliveryDone, Done, Loaded, NewOrderDone, OrderStatusDone, Outcome, PaymentDone,
    StockLevelDone, Terminal, Why,
};
pub use consistency::{Consistency, Totals, check, totals};
pub use deck::Kind;
pub use embedded::{Embedded, EmbeddedTerminal};
pub use input::{CustomerBy, Delivery, Line, NewOrder, OrderStatus, Payment, Request, StockLevel};
#[cfg(feature = "mysql")]
pub use mysql::{Mysql, MysqlOptions, MysqlTerminal};
pub use population::Population;
pub use report::{TpccReport, TypeFigures};
pub use rows::{
    Address, Customer, CustomerFront, District, DistrictFront, History, HistoryFront, Item,
    ItemFront, NewOrderRow, Order, OrderFront, OrderLine, OrderLineFront, Relation, Row, Stock,
    StockFront, Warehouse, WarehouseFront,
};
pub use run::{TpccOptions, check_only, run};
pub use scale::{Constants, Scale};
pub use store::{Access, Edit, Isolation, Stop, Transactional, Txn};
pub use text::Text;
